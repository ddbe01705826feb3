// `troupe data arithmetic`: writes the one-digit arithmetic task as JSONL.
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/data/arithmetic.hpp"

#include <cstdio>

namespace troupe::app {

core::Result<void> run_data(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs("usage: troupe data arithmetic --out DIR [--seed N] [--held-out N]\n", stdout);
    return {};
  }
  if (words[0] != "arithmetic") {
    return core::fail(core::ErrorCode::kConfig,
                      "there is no task '" + words[0] + "'; use troupe data arithmetic");
  }
  std::string out;
  std::int64_t seed = 1, held_out = 40;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe data arithmetic: write one-digit sums and differences as train.jsonl and "
                  "heldout.jsonl; no fact family is on both sides",
                  {{"--out", &out, "folder to write to", true},
                   {"--seed", &seed, "which families are held out", false, 0, 1e18},
                   {"--held-out", &held_out, "least number of held-out problems", false, 1, 73}},
                  words.subspan(1)));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(
      split, data::split_arithmetic(static_cast<std::uint64_t>(seed), static_cast<int>(held_out)));
  TROUPE_TRY(data::write_arithmetic(split, out));
  std::printf("%s: %zu training and %zu held-out problems\n", out.c_str(), split.train.size(),
              split.held_out.size());
  return {};
}

}  // namespace troupe::app
