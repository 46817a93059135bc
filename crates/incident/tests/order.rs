//! The order of the steps is the compiler's business: what skips one does not build.

#[test]
fn no_step_can_be_taken_before_the_one_in_front_of_it() {
    let cases = trybuild::TestCases::new();

    cases.pass("tests/order/in_order.rs");
    cases.compile_fail("tests/order/bad_*.rs");
}
