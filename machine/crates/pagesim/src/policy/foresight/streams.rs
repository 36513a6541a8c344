// SPDX-License-Identifier: Apache-2.0
//! Runs of neighbouring addresses, upward or downward. A process has several at a time.

/// Largest number of streams of a process. The one that was unused for longest goes first.
pub const COUNT: usize = 16;

/// Largest distance from the end of a stream at which a page still belongs to it.
const NEAR: i64 = 2;

/// Number of pages between the end of a stream and a page that it has passed. It is not small, because a program may read the
/// pages of a stream twice, part by part, as it reads those of matrices.
const PASSED: i64 = 128;

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page with which it began.
    first: i64,
    /// The last page that it reached.
    at: i64,
    /// +1, -1, or 0 while the stream is a single page.
    step: i64,
    /// Number of pages to prefetch.
    window: u32,
    /// The page after the last prefetched one, in the stream's direction.
    next: i64,
}

/// The streams of one process, most recently used first.
#[derive(Debug, Default)]
pub struct Streams(Vec<Stream>);

impl Streams {
    /// Notes the use of page `vpn`. Returns the pages to prefetch, and the page that its stream has passed, if any. The window
    /// doubles with each page of a stream, up to `most` pages.
    pub fn ahead(&mut self, vpn: u64, most: u32) -> (Vec<u64>, Option<u64>) {
        let vpn = vpn as i64;
        let found = self.0.iter().position(|stream| {
            let moved = vpn - stream.at;
            moved != 0 && moved.abs() <= NEAR && (stream.step == 0 || moved.signum() == stream.step)
        });
        let Some(found) = found else {
            self.0.retain(|stream| stream.at != vpn);
            self.0.truncate(COUNT - 1);
            self.0.insert(0, Stream { first: vpn, at: vpn, step: 0, window: 0, next: vpn });
            return (vec![], None);
        };
        let mut stream = self.0.remove(found);
        let step = (vpn - stream.at).signum();
        let begins = stream.step == 0;
        (stream.at, stream.step) = (vpn, step);
        stream.window = if begins { 1 } else { stream.window * 2 }.min(most);
        if begins || (stream.next - vpn) * step <= 0 {
            stream.next = vpn + step;
        }
        let end = vpn + step * (i64::from(stream.window) + 1);
        let mut pages = vec![];
        while (end - stream.next) * step > 0 && stream.next >= 0 {
            pages.push(stream.next as u64);
            stream.next += step;
        }
        self.0.insert(0, stream);
        let behind = ((vpn - stream.first) * step >= PASSED).then(|| u64::try_from(vpn - step * PASSED).ok()).flatten();
        (pages, behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_with_the_stream() {
        let mut streams = Streams::default();
        let wanted: Vec<_> = [10, 11, 12, 13, 50, 14, 51, 9].map(|vpn| streams.ahead(vpn, 4).0).into();
        assert_eq!(wanted, [vec![], vec![12], vec![13, 14], vec![15, 16, 17], vec![], vec![18], vec![52], vec![],]);
        // Downward.
        assert_eq!(streams.ahead(8, 4), (vec![7], None));
        assert_eq!(streams.ahead(7, 4), (vec![6, 5], None));
        assert_eq!(streams.ahead(6, 4), (vec![4, 3, 2], None));
    }

    #[test]
    fn what_is_far_behind_is_passed() {
        let mut streams = Streams::default();
        let behind: Vec<_> = (1000..1000 + PASSED as u64 + 3).filter_map(|vpn| streams.ahead(vpn, 4).1).collect();
        assert_eq!(behind, [1000, 1001, 1002]);
        // A run that has just begun has not passed a page.
        let behind: Vec<_> = (0..3).filter_map(|n| streams.ahead(5000 - n, 4).1).collect();
        assert!(behind.is_empty());
    }
}
