// What a run is doing, in words for the terminal: who works, or who is waited for. Pure functions.
#pragma once

#include "actors/protocol/messages.hpp"

#include <string>
#include <string_view>

namespace troupe::app {

// "policy: training" for the phase "train"; a phase that has no words is its own.
std::string activity_words(std::string_view phase);

// "generators: sampling 3 of 8 groups; 2 wait for scores".
std::string activity_words(const actors::GroupCounts& counts);

}  // namespace troupe::app
