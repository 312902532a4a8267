mod common;

#[test]
fn whole() {
    assert!(common::yes());
}
