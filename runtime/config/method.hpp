// The methods of `troupe train METHOD`. Each configuration key says which methods read it; a key
// that the method does not read is refused. Constants and pure functions.
#pragma once

#include <string>
#include <string_view>

namespace troupe::config {

// A method or a set of methods, one bit each.
enum Methods : unsigned {
  kNoMethod = 0,
  kPpo = 1,       // every kind of reinforcement learning
  kSft = 2,       // supervised fine-tuning on answers
  kPretrain = 4,  // next token over all of a text
  kRm = 8,        // pairwise reward model
  kDpo = 16,
  kIpo = 32,
  kCdpo = 64,
  kKto = 128,
  kOrpo = 256,
  kSimpo = 512,
  kCpo = 1024,
  kBco = 2048,
  kDistill = 4096,                         // towards a teacher's distribution over tokens
  kPrm = 8192,                             // process reward model: a label for each step of a text
  kVariants = kDpo | kIpo | kCdpo,         // the losses of the section dpo
  kReferenceFree = kOrpo | kSimpo | kCpo,  // pairs without a reference model
  kPairs = kRm | kVariants | kReferenceFree,  // learn from pairs of chosen and rejected
  kRated = kKto | kBco,                       // learn from single answers, good or bad
  kReferenced = kVariants | kRated,           // have a reference model
  kPreference = kReferenced | kReferenceFree,
  kAnswers = kSft | kDistill,  // learn the tokens of answers
  kSupervised = kAnswers | kPretrain | kRm | kPrm | kPreference,
  kTaught = kPpo | kDistill,  // may have teachers
  kAllMethods = kPpo | kSupervised,
};

constexpr Methods operator|(Methods a, Methods b) {
  return static_cast<Methods>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

// In the order of the bits.
inline constexpr std::string_view kMethodNames[] = {"ppo", "sft",  "pretrain", "rm",   "dpo",
                                                    "ipo", "cdpo", "kto",      "orpo", "simpo",
                                                    "cpo", "bco",  "distill",  "prm"};

// kNoMethod for an unknown name.
Methods method_named(std::string_view name);

// "sft, pretrain, rm": the methods of a set.
std::string method_names(Methods methods);

}  // namespace troupe::config
