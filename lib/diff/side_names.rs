//! The functions and programs of a side of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use super::counterparts::Counterparts;
use super::own_functions::OwnFrames;
use super::program::{Program, is_evidence};
use super::renaming::Renaming;
use super::sources::Functions;
use crate::Error;
use crate::profile::Profile;
use crate::tally::{GroupBy, Row, tally_profile};

/// The calls of programs by weight, and the names of a side.
#[derive(Default)]
pub(super) struct SideNames {
    pub functions: Functions,
    pub programs: BTreeMap<String, Program>,
}

fn function_name(profile: &Profile, row: &Row) -> String {
    String::from_utf8_lossy(profile.frames.name(row.frames[0])).into_owned()
}

impl SideNames {
    /// Returns the weights of all functions and programs.
    pub fn of_functions(profiles: &[Profile]) -> Result<Self, Error> {
        let mut side = Self::default();
        for profile in profiles {
            for row in tally_profile(profile, GroupBy::Function)? {
                side.functions.add(function_name(profile, &row), row.weights[1].after.as_f64());
            }
            for row in tally_profile(profile, GroupBy::Comm)? {
                side.programs.entry(function_name(profile, &row)).or_default().weight += row.weights[0].after.as_f64();
            }
        }
        Ok(side)
    }

    /// Renames all functions and programs.
    pub fn rename(&mut self, counterparts: &Counterparts) {
        if counterparts.is_empty() {
            return;
        }
        let renaming = counterparts.renaming();
        self.functions = self.functions.rename(|name| renamed(&renaming, name));
        for (name, program) in std::mem::take(&mut self.programs) {
            self.programs.entry(renamed(&renaming, &name)).or_default().weight += program.weight;
        }
    }

    /// Adds the calls within each program.
    pub fn with_calls(mut self, profiles: &[Profile], counterparts: &Counterparts) -> Result<Self, Error> {
        let renaming = counterparts.renaming();
        for profile in profiles {
            let names: Vec<String> =
                profile.frames.iter().map(|(_, name)| renamed(&renaming, &String::from_utf8_lossy(name))).collect();
            let own = OwnFrames::new(profile);
            profile.for_each(|stack, weights| {
                let Some(root) = stack.first() else { return Ok::<(), Error>(()) };
                let program = self.programs.entry(names[root.index()].clone()).or_default();
                let calls: BTreeSet<_> = stack.windows(2).enumerate().map(|(depth, call)| (depth == 0, call)).collect();
                for (is_first, call) in calls {
                    let callee = &names[call[1].index()];
                    if !is_evidence(callee) {
                        continue;
                    }
                    let caller = if is_first { String::new() } else { names[call[0].index()].clone() };
                    *program.calls.entry((caller, callee.clone())).or_default() += weights.after.as_f64();
                }
                let functions = own.find(stack).map(|frame| &names[frame.index()]);
                for function in functions.collect::<BTreeSet<_>>() {
                    *program.functions.entry(function.clone()).or_default() += weights.after.as_f64();
                }
                Ok(())
            })?;
        }
        Ok(self)
    }

    pub fn has_other_programs(&self, other: &Self) -> bool {
        self.heaviest_only_here(other).is_some()
    }

    /// Returns the programs that the other side does not have: neither as a program nor, where stacks begin with functions, as one
    /// that another calls.
    pub fn programs_only_here(&self, other: &Self) -> impl Iterator<Item = (&String, &Program)> {
        let only = self.programs.iter().filter(|(name, _)| !other.functions.has(name));
        only.filter(|(name, _)| !name.starts_with('['))
    }

    /// Returns the heaviest of them.
    pub fn heaviest_only_here(&self, other: &Self) -> Option<(&str, &Program)> {
        let programs = self.programs_only_here(other);
        programs.max_by(|a, b| a.1.weight.total_cmp(&b.1.weight)).map(|(name, program)| (name.as_str(), program))
    }

    /// Returns the only name that starts with `[` and the program, and that the other side does not have.
    pub fn object_only_here(&self, other: &Self, program: &str) -> Option<String> {
        let names = self.functions.only_here(&other.functions).map(|(name, _)| name);
        let mut objects = names.filter(|name| name.strip_prefix('[').is_some_and(|name| name.starts_with(program)));
        let first = objects.next().filter(|name| name.ends_with(']'))?;
        objects.next().is_none().then(|| first.to_owned())
    }
}

fn renamed(renaming: &Renaming<'_>, name: &str) -> String {
    String::from_utf8_lossy(&renaming.rename(name.as_bytes())).into_owned()
}
