// `troupe data arithmetic`: writes the arithmetic task as JSONL.
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/data/arithmetic.hpp"

#include <cstdio>

namespace troupe::app {

core::Result<void> run_data(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs(
        "usage: troupe data arithmetic --out DIR [--seed N] [--held-out N]\n"
        "                                 [--digits 1|2] [--valid N] [--sft N]\n",
        stdout);
    return {};
  }
  if (words[0] != "arithmetic") {
    return core::fail(core::ErrorCode::kConfig, "there is no task '" + words[0] + "'",
                      "use troupe data arithmetic");
  }
  std::string out;
  std::int64_t seed = 1, held_out = 40, digits = 1, valid = 0, sft = 0;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags(
          "troupe data arithmetic: write sums and differences as train.jsonl, heldout.jsonl "
          "and valid.jsonl; no fact family is in two of them",
          {{"--out", &out, "folder to write to", true},
           {"--seed", &seed, "which families are held out", false, 0, 1e18},
           {"--held-out", &held_out, "least number of held-out problems", false, 1, 6000},
           {"--digits", &digits, "of the numbers", false, 1, 2},
           {"--valid", &valid, "least number of validation problems", false, 0, 6000},
           {"--sft", &sft, "training problems apart, as sft.jsonl", false, 0, 10000}},
          words.subspan(1)));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(
      split, data::split_arithmetic(static_cast<std::uint64_t>(seed), static_cast<int>(held_out),
                                    static_cast<int>(digits), static_cast<int>(valid)));
  TROUPE_TRY(data::take_apart(split, static_cast<int>(sft)));
  TROUPE_TRY(data::write_arithmetic(split, out));
  std::printf("%s: %zu training, %zu validation and %zu held-out problems\n", out.c_str(),
              split.train.size(), split.valid.size(), split.held_out.size());
  return {};
}

}  // namespace troupe::app
