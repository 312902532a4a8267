#[test]
fn lib() {}
