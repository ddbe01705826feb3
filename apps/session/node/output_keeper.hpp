// Takes over what this process, and every process that it starts, prints: a process of its own
// reads it and writes it to a log within the bounds of bounded_log.hpp. It reads faster than
// anybody can print, so no print waits or fails; it outlives this process as long as something is
// left to read, so the last words of a crash are kept, too.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace troupe::app {

// Call it on the main thread, before the process has other threads; it gets one, which takes over
// when somebody kills the keeper. Standard output and standard
// error are as before when the system has no room for a process.
void keep_output_in(const std::filesystem::path& log);

// Whether a keeper still writes to the log.
bool keeper_writes(const std::filesystem::path& log);

}  // namespace troupe::app
