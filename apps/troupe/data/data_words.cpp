#include "apps/troupe/data/data_words.hpp"

#include "apps/session/fitted_lengths.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/asked_method.hpp"
#include "apps/troupe/data/row_flags.hpp"
#include "runtime/config/method.hpp"
#include "runtime/config/read.hpp"
#include "runtime/core/error_list.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace troupe::app {
namespace {

constexpr const char* kDataTitle = "troupe data";

// Prompts are looked at before there is a reward for them.
bool lacks_reward_alone(const core::Error& error) {
  return std::ranges::all_of(core::single_errors(error), [](const core::Error& one) {
    return one.message.starts_with("no reward: ");
  });
}

Result<DataWords> method_words(config::Methods method, cli::Words words, std::int64_t rows) {
  DataWords out;
  out.rows = rows;
  const std::vector<cli::Flag> flags = data_flags(out);
  cli::PartedWords parted = cli::part_words(words, flags);
  TROUPE_TRY(cli::parse_flags(kDataTitle, flags, parted.own));
  const bool prompts = method == config::kPpo;
  out.key = prompts ? "data.prompt_dataset" : "data.dataset";
  if (!out.data.empty()) parted.rest.insert(parted.rest.end(), {"--" + out.key, out.data});
  if (!out.model.empty())
    parted.rest.insert(parted.rest.end(), {"--actor.model_name_or_path", out.model});
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), parted.rest, method));
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  TROUPE_TRY(session::fit_lengths(builder));
  const auto whole = builder.finish();
  if (!whole && !lacks_reward_alone(whole.error())) return whole.failure();
  out.config = whole ? *whole : builder.current();
  out.sets = prompts ? out.config->data.prompt_dataset : out.config->data.dataset;
  return out;
}

// The method that the first word names, by its own name or by an estimator's; kNoMethod: it is a
// file.
config::Methods method_first(cli::Words words) {
  if (words.empty()) return config::kNoMethod;
  const auto asked = asked_for(words[0]);
  std::error_code error;
  if (!asked || (!asked->estimator.empty() && std::filesystem::exists(words[0], error)))
    return config::kNoMethod;
  return asked->method;
}

}  // namespace

std::vector<cli::Flag> data_flags(DataWords& out) {
  return row_flags(out.data, out.model,
                   {{"--rows", &out.rows, "how many rows; 0: all", false, 0, 1e15},
                    {"--json", &out.json, "print JSON"}});
}

Result<DataWords> data_words(cli::Words words, std::int64_t rows) {
  const config::Methods method = method_first(words);
  if (method != config::kNoMethod) return method_words(method, words.subspan(1), rows);
  DataWords out;
  out.rows = rows;
  std::vector<std::string> files;
  TROUPE_TRY(cli::parse_flags(kDataTitle, data_flags(out), words, &files));
  if (!out.data.empty()) files.push_back(out.data);
  if (files.empty()) {
    return fail(ErrorCode::kConfig, "neither files nor a method are named",
                "name files of rows, or a method and its configuration; `troupe data --help`");
  }
  for (const std::string& file : files)
    out.sets += (out.sets.empty() ? "" : ",") + file;
  out.key = "data.dataset";
  return out;
}

}  // namespace troupe::app
