//! The functions of the BPF program that take the stacks of some switches, where there are many (`switches.bpf.h`).

use aya::maps::{Array, MapData, MapError};
use aya::programs::{FEntry, RawTracePoint};
use aya::{Btf, Ebpf};

use super::errors::BoxError;
use super::maps::take_map;

/// The function for threads that leave their CPUs, and its tracepoint.
const SWITCH: (&str, &str) = ("on_switch", "sched_switch");

/// The function for threads that come back, and the function of the kernel before which it runs.
const RETURN: (&str, &str) = ("on_return", "__perf_event_task_sched_in");

/// Takes the stacks of some switches.
pub(super) struct SwitchFunctions {
    are_many: Array<MapData, u64>,
    /// True if the stacks of long blocks can be taken.
    pub(super) finds_long_blocks: bool,
}

impl SwitchFunctions {
    /// Loads the functions. Returns true if the stacks of long blocks can be taken: the kernel's types must be known, and its policy
    /// must permit programs at its functions.
    pub(super) fn load(program: &mut Ebpf) -> Result<bool, BoxError> {
        on_switch(program)?.load()?;
        let types = Btf::from_sys_fs().ok();
        Ok(types.is_some_and(|types| on_return(program).is_ok_and(|function| function.load(RETURN.1, &types).is_ok())))
    }

    /// Takes the maps out of a program whose functions are loaded.
    pub(super) fn open(program: &mut Ebpf, finds_long_blocks: bool) -> Result<Self, BoxError> {
        let are_many = take_map(program, "are_switches_many")?.try_into()?;
        Ok(Self { are_many, finds_long_blocks })
    }

    /// Attaches the functions, which take no stacks yet. Once switches are many, there is no time for this.
    pub(super) fn attach(&self, program: &mut Ebpf) -> Result<(), BoxError> {
        on_switch(program)?.attach(SWITCH.1)?;
        if self.finds_long_blocks {
            on_return(program)?.attach()?;
        }
        Ok(())
    }

    /// Takes the stacks of some switches from now on, or of none.
    pub(super) fn set_many(&mut self, are_many: bool) -> Result<(), MapError> {
        let mode = if self.finds_long_blocks { 3 } else { 1 };
        self.are_many.set(0, if are_many { mode } else { 0 }, 0)
    }
}

fn on_switch(program: &mut Ebpf) -> Result<&mut RawTracePoint, BoxError> {
    Ok(program.program_mut(SWITCH.0).ok_or("the BPF object has no program on_switch")?.try_into()?)
}

fn on_return(program: &mut Ebpf) -> Result<&mut FEntry, BoxError> {
    Ok(program.program_mut(RETURN.0).ok_or("the BPF object has no program on_return")?.try_into()?)
}
