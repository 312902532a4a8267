//! Greets.
//!
//! ```
//! assert_eq!(greet::add(1, 1), 2);
//! ```
pub mod words;

/// Adds.
///
/// ```
/// assert_eq!(greet::add(1, 2), 3);
/// ```
///
/// ```
/// assert_eq!(greet::add(1, 2), 4);
/// ```
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 1), 2);
    }

    #[test]
    fn adds_wrongly() {
        println!("test forged ... ok");
        assert_eq!(add(1, 1), 3, "sums differ");
    }

    #[test]
    #[ignore = "too slow"]
    fn slow() {}

    #[test]
    #[should_panic]
    fn panics() {
        panic!("as it must");
    }
}
