#[test]
fn never() { broken::b() }
