//! Bytes that were opened or decompressed on the way, and are needed as long as what they belong to is looked at.

use std::cell::OnceCell;
use std::ops::Deref;

/// Bytes that stay where they are until all are dropped.
#[derive(Default)]
pub struct Kept {
    first: OnceCell<Box<Link>>,
}

struct Link {
    bytes: Box<dyn Deref<Target = [u8]>>,
    next: OnceCell<Box<Self>>,
}

impl Kept {
    /// Keeps these, too.
    pub fn keep(&self, bytes: impl Deref<Target = [u8]> + 'static) -> &[u8] {
        let mut last = &self.first;
        while let Some(link) = last.get() {
            last = &link.next;
        }
        &last.get_or_init(|| Box::new(Link { bytes: Box::new(bytes), next: OnceCell::new() })).bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // One after the other: there may be more than a stack is deep.
        let mut next = self.first.take();
        while let Some(mut link) = next {
            next = link.next.take();
        }
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Kept")
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn what_is_kept_stays() {
        let kept = Kept::default();
        let all: Vec<&[u8]> = (0..5000u32).map(|n| kept.keep(n.to_le_bytes().to_vec())).collect();
        assert!((0..5000u32).all(|n| all[n as usize] == n.to_le_bytes()));
    }
}
