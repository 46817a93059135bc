//! The value that lets processes be ended, made by hand.

use incident::{Attribute, Case, Confirmation, Confirmed, Preserve, Revoke};

fn forge(
    case: Case,
    preserve: Preserve,
    attribute: Attribute,
    revoke: Revoke,
    body: Confirmation,
) -> Confirmed {
    Confirmed {
        case,
        preserve,
        attribute,
        revoke,
        body,
    }
}

fn main() {}
