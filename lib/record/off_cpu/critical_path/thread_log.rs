//! The activity of each thread in the order of time: the steps between its switches, and the samples taken while it ran.

use crate::profile::FrameId;
use crate::record::off_cpu::switch_event::{SwitchEvent, SwitchEventKind};
use crate::record::off_cpu::waker_chains::{Wakeup, Waking};

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// Nothing: the block lasts to the end of the recording.
    Open,
    /// A wake-up that was not seen.
    Unseen,
    /// A wake-up that was seen.
    Woken(Waking),
    /// The end of the process.
    Killed,
}

/// The activity of a thread during a step. Stacks are `None` if they are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It ran on a CPU.
    Running,
    /// It could have run: it was preempted or woken in this stack.
    Runnable(Option<u32>),
    /// It was blocked until it was woken.
    Blocked(Option<u32>, BlockEnd),
    /// It was blocked since before the recording.
    Asleep,
    /// Unknown: a switch was lost.
    Lost,
}

/// A part of a thread's life, up to the start of the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time at which the step began.
    pub start: u64,
    /// The activity of the thread.
    pub activity: Activity,
}

/// A sample of a running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// The time of the sample.
    pub time: u64,
    /// The ID of its stack.
    pub stack: u32,
}

/// The name of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// The ID of the name.
    pub comm: FrameId,
    /// The ID of the stack that contains nothing else.
    pub stack: u32,
}

/// The steps and samples of a thread.
#[derive(Clone, Debug)]
pub struct ThreadLog {
    /// The time at which the thread was created or first seen.
    pub begin: u64,
    steps: Vec<Step>,
    samples: Vec<RunSample>,
    /// The time of its exit, after which it may still wake others.
    pub exit: Option<u64>,
    /// Its name, which is forgotten after its exit.
    pub name: Option<ThreadName>,
    /// True until an event tells whether the thread ran when it was first seen.
    is_undecided: bool,
    /// The last wake-up since it ran.
    wakeup: Option<Wakeup>,
    /// The stack of the switch-out to come.
    next_stack: Option<u32>,
}

impl ThreadLog {
    /// Creates the log of a thread that is first seen by an event.
    pub fn new(event: SwitchEvent) -> Self {
        let activity = match event.kind {
            SwitchEventKind::Existing => Activity::Asleep,
            SwitchEventKind::Created => Activity::Runnable(None),
            _ => Activity::Running,
        };
        Self {
            begin: event.time,
            steps: vec![Step { start: event.time, activity }],
            samples: Vec::new(),
            exit: None,
            name: None,
            is_undecided: event.kind == SwitchEventKind::Existing,
            wakeup: None,
            next_stack: None,
        }
    }

    /// Adds an event. Returns the number of steps and samples that it adds.
    pub fn add(&mut self, SwitchEvent { time, kind, .. }: SwitchEvent) -> usize {
        let before = self.len();
        match kind {
            SwitchEventKind::Exited => {
                self.decide_running();
                self.exit = Some(time);
            }
            SwitchEventKind::Woken(waking) => self.wakeup = Some(Wakeup { time, waking: Some(waking) }),
            SwitchEventKind::Killed => self.wakeup = Some(Wakeup { time, waking: None }),
            SwitchEventKind::Asleep(stack) if std::mem::take(&mut self.is_undecided) => {
                *self.last_activity() = stack.map_or(Activity::Asleep, |_| Activity::Blocked(stack, BlockEnd::Open));
            }
            SwitchEventKind::SwitchSample(sample) => self.next_stack = Some(sample.stack),
            SwitchEventKind::RunSample(stack) => {
                self.decide_running();
                self.samples.push(RunSample { time, stack });
            }
            SwitchEventKind::Out { preempted, .. } => self.switch_out(time, preempted),
            SwitchEventKind::In => self.switch_in(time),
            _ => {}
        }
        self.len() - before
    }

    fn switch_out(&mut self, time: u64, preempted: bool) {
        self.decide_running();
        let stack = self.next_stack.take();
        let last = self.last_activity();
        if *last != Activity::Running {
            // When it ran is not known.
            *last = Activity::Lost;
        }
        self.push(time, if preempted { Activity::Runnable(stack) } else { Activity::Blocked(stack, BlockEnd::Open) });
    }

    fn switch_in(&mut self, time: u64) {
        self.is_undecided = false;
        self.next_stack = None;
        self.end_block(time);
        match self.last_activity() {
            Activity::Blocked(_, end) => *end = BlockEnd::Unseen,
            last @ Activity::Running => *last = Activity::Lost,
            _ => {}
        }
        self.push(time, Activity::Running);
    }

    /// Ends the present block if the thread was woken before `time`: from then on it could have run.
    pub fn end_block(&mut self, time: u64) {
        let start = self.steps.last().map_or(self.begin, |step| step.start);
        let Some(wakeup) = self.wakeup.take() else { return };
        if let Activity::Blocked(stack, end) = self.last_activity() {
            *end = wakeup.waking.map_or(BlockEnd::Killed, BlockEnd::Woken);
            let stack = *stack;
            self.push(wakeup.time.clamp(start, time.max(start)), Activity::Runnable(stack));
        }
    }

    /// Takes the thread for running if it is not known what it did when it was first seen.
    fn decide_running(&mut self) {
        if std::mem::take(&mut self.is_undecided) {
            *self.last_activity() = Activity::Running;
        }
    }

    /// Returns the present activity.
    fn last_activity(&mut self) -> &mut Activity {
        if self.steps.is_empty() {
            self.steps.push(Step { start: self.begin, activity: Activity::Lost });
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last].activity
    }

    fn push(&mut self, start: u64, activity: Activity) {
        self.steps.push(Step { start, activity });
    }

    /// Returns the number of steps and samples.
    pub fn len(&self) -> usize {
        self.steps.len() + self.samples.len()
    }

    /// Iterates over the starts of all steps.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().map(|step| step.start)
    }

    /// Forgets what ended before a time.
    pub fn forget_before(&mut self, time: u64) {
        let steps = self.steps.partition_point(|step| step.start < time).saturating_sub(1);
        self.steps.drain(..steps);
        self.samples.drain(..self.samples.partition_point(|sample| sample.time < time));
    }

    /// Returns the step that the thread was in right before a time, and true if the step ends then.
    pub fn step_before(&self, time: u64) -> Option<(Step, bool)> {
        let next = self.steps.partition_point(|step| step.start < time);
        let step = *self.steps.get(next.checked_sub(1)?)?;
        Some((step, self.steps.get(next).is_some_and(|next| next.start == time)))
    }

    /// True if the thread began at a time, and nothing of it is forgotten.
    pub fn begins_at(&self, time: u64) -> bool {
        self.begin == time && self.steps.first().is_some_and(|step| step.start == time)
    }

    /// Returns the samples from one time up to another.
    pub fn samples(&self, time: std::ops::Range<u64>) -> &[RunSample] {
        let [start, end] = [time.start, time.end].map(|time| self.samples.partition_point(|sample| sample.time < time));
        &self.samples[start..end.max(start)]
    }
}
