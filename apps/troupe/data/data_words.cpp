#include "apps/troupe/data/data_words.hpp"

#include "apps/cli/flags.hpp"
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/method.hpp"
#include "runtime/config/read.hpp"

#include <cstdio>
#include <vector>

namespace troupe::app {
namespace {

// Takes --json and --rows out of a method's words.
Result<std::vector<std::string>> own_flags(cli::Words words, DataWords& out) {
  std::vector<std::string> rest, own;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--json" || word.starts_with("--rows=")) {
      own.push_back(word);
    } else if (word == "--rows") {
      own.push_back(word);
      if (i + 1 < words.size()) own.push_back(words[++i]);
    } else {
      rest.push_back(word);
    }
  }
  TROUPE_TRY(cli::parse_flags(
      "", {{"--rows", &out.rows, "", false, 0, 1e15}, {"--json", &out.json, ""}}, own));
  return rest;
}

Result<DataWords> method_words(config::Methods method, cli::Words words, DataWords out) {
  TROUPE_TRY_ASSIGN(rest, own_flags(words, out));
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), rest, method));
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  TROUPE_TRY(session::fit_lengths(builder));
  TROUPE_TRY_SET(out.config, builder.finish());
  const bool prompts = method == config::kPpo;
  out.key = prompts ? "data.prompt_dataset" : "data.dataset";
  out.sets = prompts ? out.config->data.prompt_dataset : out.config->data.dataset;
  return out;
}

}  // namespace

Result<DataWords> data_words(cli::Words words, std::int64_t rows) {
  DataWords out;
  out.rows = rows;
  const config::Methods method = words.empty() ? config::kNoMethod : config::method_named(words[0]);
  if (method != config::kNoMethod) return method_words(method, words.subspan(1), std::move(out));
  std::vector<std::string> files;
  TROUPE_TRY(cli::parse_flags("troupe data",
                              {{"--rows", &out.rows, "how many rows; 0: all", false, 0, 1e15},
                               {"--json", &out.json, "JSON"},
                               {"--model", &out.model, "its tokens are counted"}},
                              words, &files));
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
