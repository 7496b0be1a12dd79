//! The service `flows`: which rules, groups and meters are wanted in which switches, and whether they are there.
