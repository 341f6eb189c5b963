//! (loop_file)
