//! Categories of functions, by the first pattern that matches the name.

use std::path::Path;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

use crate::Error;
use crate::error::regex_error_text;

/// The rules that apply if no file is given.
pub const DEFAULT: &str = include_str!("categories.txt");

/// Category of functions that no rule matches.
pub const OTHER: &str = "other";

/// Rules in order.
#[derive(Debug)]
pub struct Categories {
    names: Vec<String>,
    patterns: RegexSet,
}

impl Categories {
    /// Parses rules, one a line: a category, blanks, a regular expression. Empty lines and lines that start with `#`
    /// are comments. `source` names the text in messages.
    ///
    /// # Errors
    /// [`Error::Malformed`] if a line is not a rule.
    pub fn parse(text: &str, source: &str) -> Result<Self, Error> {
        let (mut names, mut patterns, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let malformed = |line, what| Error::Malformed { name: source.to_owned(), line, what };
        for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
            let rule = line.trim();
            if rule.is_empty() || rule.starts_with('#') {
                continue;
            }
            let parts = rule.split_once([' ', '\t']);
            let (name, pattern) =
                parts.ok_or_else(|| malformed(number, "expected a category and a regular expression".to_owned()))?;
            names.push(name.to_owned());
            patterns.push(pattern.trim_start());
            lines.push(number);
        }
        let compiled = RegexSet::new(&patterns).map_err(|error| {
            // The error of all patterns does not say which one is wrong.
            let mut single = patterns.iter().zip(&lines).filter_map(|(one, line)| Some((Regex::new(one).err()?, line)));
            single.next().map_or_else(
                || Error::Unreadable { name: source.to_owned(), what: error.to_string() },
                |(error, line)| malformed(*line, regex_error_text(&error)),
            )
        })?;
        Ok(Self { names, patterns: compiled })
    }

    /// Returns the rules that apply if no file is given.
    ///
    /// # Panics
    /// If they are invalid.
    pub fn of_default() -> &'static Self {
        static RULES: LazyLock<Categories> =
            LazyLock::new(|| Categories::parse(DEFAULT, "categories").expect("valid rules"));
        &RULES
    }

    /// Reads rules from a file, or returns the default rules without one.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Malformed`] if a line is not a rule.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Self::parse(DEFAULT, "categories") };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::read(&name, error))?;
        Self::parse(&text, &name)
    }

    /// Returns the names of all categories, each once, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().enumerate();
        let first = names.filter(|(number, name)| !self.names[..*number].contains(name));
        first.map(|(_, name)| &name[..]).chain([OTHER])
    }

    /// Returns the category of self weight: that of the thread state, if a rule matches one, else that of the function.
    pub fn categorize_leaf(&self, function: &[u8], state: Option<&[u8]>) -> &str {
        let of_state = state.map(|state| self.categorize(state)).filter(|category| *category != OTHER);
        of_state.unwrap_or_else(|| self.categorize(function))
    }

    /// Returns the category of a function.
    pub fn categorize(&self, function: &[u8]) -> &str {
        self.patterns.matches(function).iter().next().map_or(OTHER, |first| &self.names[first])
    }
}

#[cfg(test)]
mod tests {
    use super::{Categories, DEFAULT};

    #[test]
    fn default_rules_categorize_known_functions() {
        let categories = Categories::parse(DEFAULT, "categories.txt").unwrap();
        for (function, category) in [
            ("[off-cpu]", "blocked"),
            ("[unknown]", "unknown"),
            ("[unknown]_[k]", "unknown"),
            ("tcp_sendmsg_locked_[k]", "kernel-net"),
            ("__tcp_transmit_skb", "kernel-net"),
            ("ext4_file_write_iter", "kernel-fs"),
            ("vfs_read_[k]", "kernel-fs"),
            ("do_anonymous_page", "kernel-mm"),
            ("asm_exc_page_fault", "kernel-mm"),
            ("__schedule", "kernel-sched"),
            ("finish_task_switch.isra.0", "kernel-sched"),
            ("entry_SYSCALL_64_after_hwframe", "kernel-syscall"),
            ("do_syscall_64_[k]", "kernel-syscall"),
            ("asm_sysvec_apic_timer_interrupt", "kernel-irq"),
            ("memset_erms_[k]", "kernel"),
            ("_raw_spin_unlock_irqrestore", "kernel"),
            ("iowrite16", "kernel"),
            ("__cond_resched", "kernel-sched"),
            ("malloc", "allocator"),
            ("_int_free", "allocator"),
            ("operator new(unsigned long)", "allocator"),
            ("je_arena_ralloc", "allocator"),
            ("__memmove_avx512_unaligned_erms", "libc"),
            ("read", "libc"),
            ("readline", "other"),
            ("pthread_mutex_lock", "libc"),
            ("__libc_start_main@@GLIBC_2.34", "libc"),
            ("__GI___libc_malloc", "allocator"),
            ("vm_exec_core", "interpreter"),
            ("read_config", "other"),
            ("schedule_job", "other"),
            ("proc_exit", "other"),
            ("shrink_to_fit", "other"),
            ("schedule_[k]", "kernel-sched"),
            ("sys_epoll_ctl", "kernel-syscall"),
            ("[libc.so.6]", "libc"),
            ("tokio::runtime::park", "async"),
            ("<tokio::task::Task as core::future::Future>::poll", "async"),
            ("tracing::span::Span::enter", "tracing"),
            ("LFoo;::bar_[j]", "jit"),
            ("_PyEval_EvalFrameDefault", "interpreter"),
            ("Builtins_InterpreterEntryTrampoline", "interpreter"),
            ("main", "other"),
            ("myapp::parse", "other"),
            ("freeze_table", "other"),
            ("io::copy", "other"),
            ("ip_address_parse_user", "kernel-net"),
        ] {
            assert_eq!(categories.categorize(function.as_bytes()), category, "{function}");
        }
    }

    #[test]
    fn the_first_matching_rule_wins() {
        let categories = Categories::parse("# mine\nhot ^parse\n\nall .\n", "mine").unwrap();
        assert_eq!(
            [categories.categorize(b"parse_term"), categories.categorize(b"read"), categories.categorize(b"")],
            ["hot", "all", "other"]
        );
    }

    #[test]
    fn reports_malformed_rules_with_line_numbers() {
        for (text, expected) in
            [("a b\nalone\n", "mine:2: expected a category"), ("a (\n", "mine:1: regex parse error")]
        {
            let error = Categories::parse(text, "mine").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
