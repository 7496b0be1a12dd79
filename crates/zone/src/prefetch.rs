//! Tells the processor which memory will be read soon.
//!
//! In: a place. Out: nothing. The processor fetches the place's cache line and does not wait for it, so a program can have
//! many lines on their way. It never changes what a program computes.

/// Fetches the cache line of a place.
#[inline(always)]
pub fn prefetch(place: &u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has this instruction. It reads nothing that a program sees, and cannot fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *place).cast()) };
    }
    // A read that nothing depends on does nearly the same.
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(*place);
}
