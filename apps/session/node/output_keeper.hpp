// Takes over what this process, and every process that it starts, prints: a process of its own
// reads it and writes it to a log within the bounds of bounded_log.hpp. It reads faster than
// anybody can print, so no print waits or fails; it outlives this process as long as something is
// left to read, so the last words of a crash are kept, too. It is a child of this one's parent,
// which lives on and can wait for it: where process 1 waits for nobody, an orphan would stay.
#pragma once

#include <cstddef>
#include <filesystem>

namespace troupe::session {

// Call it on the main thread, before the process has other threads; it gets one, which takes over
// when somebody kills the keeper. Standard output and standard
// error are as before when the system has no room for a process.
void keep_output_in(const std::filesystem::path& log);

// Waits for the keepers among this process's children that have ended, and returns how many those
// were. Any thread; other children are left to their starters.
std::size_t reap_keepers();

// Whether a keeper still writes to the log.
bool keeper_writes(const std::filesystem::path& log);

}  // namespace troupe::session
