// What may stand at the end of a command line of `troupe`: commands, methods, flags, keys and their
// words. Reads nothing but the tables of the program.
#pragma once

#include "apps/cli/words.hpp"

#include <string>
#include <vector>

namespace troupe::app {

struct Candidates {
  std::vector<std::string> words;  // that begin with what is there, in the order of the tables
  bool files = false;              // a file's name may stand there, too
};

// `words` are those behind `troupe`; the last one is being written and may be empty. A shell may
// give `--key=value` as three words, with "=" in the middle.
Candidates candidates_for(cli::Words words);

}  // namespace troupe::app
