//! Names of slices and VNICs that are compared where they are.
//!
//! In: texts. Out: whether a text is the name. A short name needs no memory of its own, so comparing it is no further miss in the processor's cache.

/// The longest name that is kept in place, in bytes. A longer one is in memory of its own.
const SHORT: usize = 22;

/// A name.
#[derive(Clone, Debug)]
pub struct Name(Text);

#[derive(Clone, Debug)]
enum Text {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<str>),
}

impl Name {
    /// From a text.
    pub fn new(text: &str) -> Name {
        let mut bytes = [0; SHORT];
        Name(match bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text.as_bytes());
                // At most SHORT.
                Text::Short { length: text.len() as u8, bytes }
            }
            None => Text::Long(text.into()),
        })
    }

    /// Whether this text is the name.
    pub fn is(&self, text: &str) -> bool {
        self.bytes() == text.as_bytes()
    }

    /// As a text.
    pub fn as_str(&self) -> &str {
        // It was made from a text.
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short { length, bytes } => &bytes[..usize::from(*length)],
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl Default for Name {
    fn default() -> Name {
        Name::new("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_text_however_long_it_is() {
        let texts = ["", "A", "A\0", "é", &"x".repeat(SHORT), &"x".repeat(SHORT + 1), &"é".repeat(40)];
        for text in texts {
            let name = Name::new(text);
            assert_eq!(name.as_str(), text);
            for other in texts {
                assert_eq!(name.is(other), text == other, "{text} {other}");
            }
        }
    }

    #[test]
    fn a_list_of_names_is_small() {
        assert_eq!(size_of::<Option<Name>>(), 24);
    }
}
