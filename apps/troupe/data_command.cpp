// `troupe data`: looks at files of rows, converts them, and writes the arithmetic task.
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/data/data_actions.hpp"
#include "runtime/data/arithmetic.hpp"

#include <cstdio>

namespace troupe::app {

namespace {

constexpr const char* kDataHelp =
    "usage: troupe data preview FILES [--rows N] [--json]\n"
    "       troupe data stats FILES [--model M] [--rows N] [--json]\n"
    "       troupe data check FILES [--json]\n"
    "       troupe data preview|stats|check METHOD --data FILES --model M [--json]\n"
    "       troupe data preview|stats|check METHOD [CONFIG.yaml] [--key v ...] [--json]\n"
    "       troupe data convert FILES --out FILE.jsonl [--overwrite]\n"
    "       troupe data arithmetic --out DIR [--seed N] [--held-out N]\n"
    "                              [--digits 1|2] [--valid N] [--sft N]\n"
    "\n"
    "preview     the first rows (--rows N, 0: all) as the files have them or, with a method and "
    "its\n"
    "            keys, as it reads them: rendered, with what is learned; --json: one object a "
    "line\n"
    "stats       rows, columns and kinds of values, lengths, repeated rows; with a method or "
    "--model\n"
    "            also tokens by percentile\n"
    "check       refused rows by cause; with a method also labels, rows that are too long, "
    "held-out "
    "rows\n"
    "            that are trained on, small and one-sided sets, length against label. Exit 4 when "
    "rows\n"
    "            are refused\n"
    "convert     any files of rows to one .jsonl file\n"
    "arithmetic  writes the task of sums and differences\n"
    "\n"
    "FILES are files, 'patterns*' and folders of .jsonl, .json, .csv (plain, .gz or .zst), "
    ".parquet,\n"
    ".arrow or .feather (docs/data_formats.md).\n";

Result<void> write_task(cli::Words words) {
  std::string out;
  std::int64_t seed = 1, held_out = 40, digits = 1, valid = 0, sft = 0;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe data arithmetic: write sums and differences as train.jsonl, heldout.jsonl "
          "and valid.jsonl; no fact family is in two of them",
          {{"--out", &out, "folder to write to", true},
           {"--seed", &seed, "which families are held out", false, 0, 1e18},
           {"--held-out", &held_out, "minimum number of held-out problems", false, 1, 6000},
           {"--digits", &digits, "digits of the numbers", false, 1, 2},
           {"--valid", &valid, "least number of validation problems", false, 0, 6000},
           {"--sft", &sft, "training problems to put aside in sft.jsonl", false, 0, 10000}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(
      split, data::split_arithmetic(static_cast<std::uint64_t>(seed), static_cast<int>(held_out),
                                    static_cast<int>(digits), static_cast<int>(valid)));
  TROUPE_TRY(data::take_apart(split, static_cast<int>(sft)));
  TROUPE_TRY(data::write_arithmetic(split, out));
  std::printf("%s: %zu training, %zu validation and %zu held-out problems\n", out.c_str(),
              split.train.size(), split.valid.size(), split.held_out.size());
  return {};
}

struct Action {
  std::string_view name;
  Command* run;
};
constexpr Action kActions[] = {{"preview", preview_rows},
                               {"stats", show_stats},
                               {"check", check_rows},
                               {"convert", convert_rows},
                               {"arithmetic", write_task}};

}  // namespace

Result<void> run_data(cli::Words words) {
  const bool alone = words.size() == 1 && cli::wants_help(words);
  if (words.empty() || alone) {
    std::fputs(kDataHelp, stdout);
    return {};
  }
  for (const Action& action : kActions) {
    if (action.name != words[0]) continue;
    const bool own_help = action.name == "arithmetic" || action.name == "convert";
    if (!own_help && cli::wants_help(words)) {
      std::fputs(kDataHelp, stdout);
      return {};
    }
    return action.run(words.subspan(1));
  }
  return fail(ErrorCode::kConfig, "there is no `data " + words[0] + "`",
              "use preview, stats, check, convert or arithmetic");
}

}  // namespace troupe::app
