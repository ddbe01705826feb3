// Makes the text of the progress line: which role works, or what the run waits for. Pure functions.
#pragma once

#include "actors/protocol/messages.hpp"

#include <string>
#include <string_view>

namespace troupe::session {

// "policy: training" for the phase "train"; an unknown phase is returned as it is.
std::string activity_words(std::string_view phase);

// The name of a phase in the tables of a run: "waiting for scores".
std::string phase_name(std::string_view phase);

// What training waits for while groups are not there: "generate" (samples) or "score".
std::string_view awaited_phase(const actors::GroupCounts& counts);

// "generators: sampling 3 of 8 groups; 2 wait for scores".
std::string activity_words(const actors::GroupCounts& counts);

}  // namespace troupe::session
