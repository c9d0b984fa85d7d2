"""Everything that makes a number private: pure functions and frozen records, no IO, no engine."""
