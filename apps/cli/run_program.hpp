// The life of a program of ours: signals, descriptors, its command, what it prints of an error and
// its exit status. On the main thread.
#pragma once

#include "apps/cli/words.hpp"

namespace troupe::cli {

// Returns the exit status of the program. `command` gets the words after the program's name.
int run_program(int argc, char** argv, Result<void> (*command)(Words words));

}  // namespace troupe::cli
