//! The values of samples, of which `--event` selects one.

use super::Document;
use crate::Error;
use crate::collapse::filter::args::EventChoice;

impl Document<'_> {
    /// Returns the index of the value that counts, for samples with several values: the one that `--event` names, with
    /// or without the part after a slash, else the default.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no value has that name, or with `--event all`.
    pub(in crate::collapse) fn select_value(&mut self, names: &[&str], default: usize) -> Result<usize, Error> {
        self.has_values = true;
        let known = names.join(", ");
        if let Some(name) = find_repeated(names) {
            let what = format!("samples have several values named {name}; using one of them, which cannot be selected");
            self.log.warn(&what);
        }
        let index = match &self.options.event {
            EventChoice::First => default,
            EventChoice::All if names.len() == 1 || self.strays.is_none() => default,
            EventChoice::All => {
                return Err(Error::Invalid(format!("--event all: samples have several values; name one of {known}")));
            }
            EventChoice::Named(wanted) => {
                let found = find_value(names, wanted);
                let wanted = String::from_utf8_lossy(wanted);
                found.ok_or_else(|| {
                    Error::Invalid(format!("--event {wanted}: no such value; expected one of {known}"))
                })?
            }
        };
        if names.len() > 1 {
            let selected = names.get(index).copied().unwrap_or_default();
            let what = format!("samples have {known}; using {selected}");
            match self.options.event {
                EventChoice::First => self.choice = Some(format!("{what}; use --event to select")),
                EventChoice::All | EventChoice::Named(_) => self.log.note(&what),
            }
        }
        Ok(index)
    }

    /// Notes which values have weight, for the message if the selected one has none and so there are no stacks.
    pub(in crate::collapse) fn set_values_with_weight(&mut self, selected: &str, with_weight: &[&str]) {
        let others = with_weight.join(", ");
        self.weightless = (!with_weight.is_empty() && !with_weight.contains(&selected))
            .then(|| format!("no stack has a weight of {selected}; use --event to select one of {others}"));
    }

    /// Returns an error if `--event` names an event and the input has neither events nor values.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(in crate::collapse) fn check_event(&self) -> Result<(), Error> {
        let has_events = self.has_values || !self.events.seen().is_empty() || !self.summary.events.is_empty();
        let EventChoice::Named(wanted) = &self.options.event else { return Ok(()) };
        let is_unit = self.summary.unit.as_ref().is_some_and(|unit| unit.name.as_bytes() == wanted);
        if has_events || is_unit { Ok(()) } else { Err(no_events(self.name(), wanted)) }
    }

    /// Says which of several values was selected by default, after the samples were read.
    pub(in crate::collapse) fn report_choice(&mut self) {
        if let Some(choice) = self.choice.take() {
            self.log.warn(&choice);
        }
    }
}

/// Returns the error for an event that was named for an input whose samples have none.
pub(in crate::collapse) fn no_events(name: &str, wanted: &[u8]) -> Error {
    let wanted = String::from_utf8_lossy(wanted);
    Error::Invalid(format!(
        "{name}: --event {wanted}: samples of this format have one value and no event; omit --event"
    ))
}

/// Returns the first name that several values have.
fn find_repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| *name)
}

/// Returns the index of a name, or of the first name with this part before its slash.
fn find_value(names: &[&str], wanted: &[u8]) -> Option<usize> {
    let exact = names.iter().position(|name| name.as_bytes() == wanted);
    exact.or_else(|| names.iter().position(|name| name.as_bytes().split(|byte| *byte == b'/').next() == Some(wanted)))
}
