fn main() {
    assert_eq!(std::env::args().count(), 1);
    println!("\nrunning 1 test\ntest of_its_own ... ok\n");
}
