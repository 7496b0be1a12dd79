//! The match and action language of Burnet: fields, matches, actions, and what is computed on them.
