//! What finds numbered things by their hashes.

/// Numbers by hash. The things that are numbered belong to another, who compares them: what stands here is read so often
/// that it is kept as small as it can be.
#[derive(Debug, Default)]
pub(super) struct HashIndex {
    /// A power of two of them, or none.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    /// `FREE` if the place is.
    number: u32,
}

const FREE: Place = Place { hash: 0, number: u32::MAX };

impl Place {
    #[inline]
    fn is_free(self) -> bool {
        self.number == FREE.number
    }
}

impl HashIndex {
    /// The number under a hash that is the one meant.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_meant: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let place = self.places[at];
            if place.is_free() {
                return None;
            }
            if place.hash == hash && is_meant(place.number) {
                return Some(place.number);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number that stands where one of this hash is looked for first, if it has that hash.
    #[inline]
    pub(super) fn first(&self, hash: u32) -> Option<u32> {
        let place = *self.places.get(hash as usize & self.places.len().wrapping_sub(1))?;
        (!place.is_free() && place.hash == hash).then_some(place.number)
    }

    /// Makes the table large enough for so many numbers; not beside the old one, as its owner tells all that are there.
    #[inline]
    pub(super) fn make_room<I>(&mut self, count: usize, there: impl FnOnce() -> I)
    where
        I: Iterator<Item = (u32, u32)>,
    {
        if count * 4 > self.places.len() * 3 {
            self.places.clear();
            self.places.resize((count * 4 / 3 + 1).next_power_of_two().max(64), FREE);
            there().for_each(|(hash, number)| self.put(hash, number));
        }
    }

    /// Adds a number below 2³² - 1, for which there is room.
    pub(super) fn put(&mut self, hash: u32, number: u32) {
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        while !self.places[at].is_free() {
            at = (at + 1) & mask;
        }
        self.places[at] = Place { hash, number };
    }
}
