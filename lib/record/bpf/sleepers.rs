//! Runs the iterator that tells which threads of the target sleep (`sleepers.bpf.h`).

use std::io::Read as _;

use aya::programs::Iter;
use aya::{Btf, Ebpf};

use super::errors::BoxError;
use crate::record::event_record::EventRecord;

/// The function that is called for each task.
const FUNCTION: &str = "on_task";

/// Loads the iterator.
///
/// # Errors
/// The kernel's reason if it refuses it.
pub(super) fn load(program: &mut Ebpf, btf: &Btf) -> Result<(), BoxError> {
    Ok(function(program)?.load("task", btf)?)
}

/// Returns a record of each thread of the target that is asleep.
///
/// # Errors
/// Errors of the system calls.
pub(super) fn read(program: &mut Ebpf) -> Result<Vec<EventRecord>, BoxError> {
    let function = function(program)?;
    let link = function.attach()?;
    let mut bytes = Vec::new();
    function.take_link(link)?.into_file()?.read_to_end(&mut bytes)?;
    Ok(EventRecord::parse_all(&bytes))
}

fn function(program: &mut Ebpf) -> Result<&mut Iter, BoxError> {
    Ok(program.program_mut(FUNCTION).ok_or_else(|| format!("the BPF object has no program {FUNCTION}"))?.try_into()?)
}
