//! Distributes the lines of a page over its parts.

/// Lines of a page on which all parts have their usual number of lines.
pub(super) const WHOLE_PAGE: usize = 40;

/// The number of rows of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) third: usize,
    pub(super) tree: usize,
    pub(super) commands: usize,
}

impl Rows {
    /// Distributes the lines of a page of which `facts` lines are taken. Tables that do not fit get no rows.
    pub(super) fn new(lines: usize, facts: usize) -> Self {
        let commands = if lines >= WHOLE_PAGE { 2 } else { 1 };
        // A table also needs its heading, and a blank line before it.
        let tables = match lines {
            0..16 => 1,
            16..24 => 2,
            24..WHOLE_PAGE => 3,
            _ => 4,
        };
        let room = lines.saturating_sub(facts + commands + 2 + 2 * tables).max(tables);

        let (first, second, third) = match tables {
            1 => (room, 0, 0),
            2 => (share(room, 65), 0, 0),
            3 => (share(room, 55), share(room, 15), 0),
            _ => (share(room, 30), share(room, 20), share(room, 13)),
        };
        let tree = if tables == 1 { 0 } else { room.saturating_sub(first + second + third) };
        Self { first, second, third, tree, commands }
    }

    /// Gives the rows that the other tables do not use to the tree. `used` is the number that they use.
    pub(super) fn reassign(self, used: usize) -> Self {
        let unused = (self.first + self.second + self.third).saturating_sub(used);
        Self { tree: if self.tree == 0 { 0 } else { self.tree + unused }, ..self }
    }
}

/// Returns this share of the lines, at least one.
fn share(lines: usize, percent: usize) -> usize {
    (lines * percent / 100).max(1)
}

#[cfg(test)]
mod tests {
    use super::Rows;

    #[test]
    fn all_lines_are_used_and_none_is_exceeded() {
        for lines in 10..200 {
            let Rows { first, second, third, tree, commands } = Rows::new(lines, 5);
            let tables = [first, second, third, tree].iter().filter(|rows| **rows > 0).count();
            let used = 5 + first + second + third + tree + 2 * tables + commands + 2;
            assert!(used == lines || lines < 16, "{lines}: {used}");
        }
    }
}
