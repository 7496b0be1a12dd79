//! An app whose configuration changes while the node runs. Pure.
//!
//! In: the new specification of an app, and the state of the node. Out: reactions. An app that does not run stays so, unless it was paused or
//! has waited.

use super::{AppLife, Situation};
use crate::app::AppSpec;
use crate::app_phase::{AfterStop, Phase, rests};
use crate::difference::Difference;
use crate::protocol::ToKernel;
use crate::supervisor::{Reaction, StopSignal};

impl AppLife {
    /// The configuration changed. A running app gets what can change immediately, and restarts for the rest. One that
    /// does not run stays so.
    pub(crate) fn reconfigure(&mut self, spec: AppSpec, at: Situation, out: &mut Vec<Reaction>) {
        let difference = Difference::of(&self.spec, &spec);
        let rested = rests(&std::mem::replace(&mut self.spec, spec));
        match (rested, rests(&self.spec)) {
            (None, Some(why)) => return self.stop(why, at, out),
            (Some(_), None) => return self.restart(at, out),
            (Some(before), Some(why)) if before != why => return self.remember_end(why, None, at.now_ms),
            _ => {}
        }
        if difference.code {
            self.demoted = None;
        }
        if !difference.restart.is_empty() {
            return self.start_reconfigured(at, out);
        }
        let runs = self.phase.is_up() && at.kernel_ready;
        if difference.grant && runs {
            out.push(Reaction::TellKernel(ToKernel::Regrant {
                zone: self.zone,
                app: self.spec.name.clone(),
                generation: if self.is_loaded() { 0 } else { self.generation },
                grant: self.spec.grant.clone(),
            }));
        }
    }

    fn start_reconfigured(&mut self, at: Situation, out: &mut Vec<Reaction>) {
        let reason = "its configuration changed";
        match self.phase {
            Phase::Starting | Phase::Running if self.has_process() => {
                self.end(AfterStop::Again, StopSignal::Term, reason, at, out);
            }
            Phase::Running => {
                self.unload(reason, at, out);
                self.remember_end(reason, None, at.now_ms);
                self.start(at, out);
            }
            // The cause of its failure may be gone.
            Phase::BackingOff { .. } | Phase::Checking => self.start(at, out),
            _ => return,
        }
        self.backoff.forget();
    }
}
