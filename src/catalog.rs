//! Name → policy: the one place where programs, heuristics and learned policies meet.
