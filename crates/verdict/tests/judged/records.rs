//! What launch records and the log add: runs that are gone though their wire is open.
