// `troupe generate`: samples responses to one prompt, a file of prompts (to the terminal) or a
// dataset (to a file: generate_batch.hpp).
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/engine_host.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/troupe/batch/batch_sampler.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/generate_batch.hpp"
#include "apps/troupe/stream_printer.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;

struct GenerateOptions {
  std::string model, prompt, prompt_ids, prompts, out, output_key = "response", dtype = "f32";
  std::int64_t samples = 1;
  Placement placement;
  EngineFlags engine;
  bool json = false, overwrite = false;
  PromptFlags dataset;
  SamplingFlags sampling;
};

Result<std::vector<data::PromptRow>> read_prompts(const GenerateOptions& options) {
  if (!options.prompts.empty()) {
    data::DatasetColumns columns;
    columns.input_key = options.dataset.input_key;
    columns.as_chat = options.dataset.chat;
    TROUPE_TRY_ASSIGN(rows, data::load_prompts(options.prompts, columns));
    for (const std::string& note : data::prompt_notes(rows, columns))
      std::fprintf(stderr, "%s\n", note.c_str());
    return rows;
  }
  data::PromptRow row;
  row.where = "--prompt";
  if (options.dataset.chat) {
    row.messages.push_back({"user", options.prompt});
  } else {
    row.prompt = options.prompt;
  }
  return std::vector<data::PromptRow>{std::move(row)};
}

// "1,2,3".
Result<std::vector<std::int32_t>> read_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  std::string_view rest = text;
  for (;;) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::int32_t id = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + comma, id);
    if (parsed.ec != std::errc{} || parsed.ptr != rest.data() + comma || id < 0) {
      return fail(ErrorCode::kConfig, "--prompt-token-ids: '" + std::string(rest.substr(0, comma)) +
                                          "' is no token id; give them as 1,2,3");
    }
    ids.push_back(id);
    if (comma == rest.size()) return ids;
    rest.remove_prefix(comma + 1);
  }
}

class Generation {
 public:
  Generation(EngineHost& host, const GenerateOptions& options, std::vector<data::PromptRow> rows)
      : host_(host),
        options_(options),
        rows_(std::move(rows)),
        stream_(rows_.size() == 1 && options.samples == 1 && !options.json && host.has_tokenizer()),
        to_terminal_(::isatty(STDOUT_FILENO) == 1) {
    if (stream_) printer_.emplace(host.tokenizer(), to_terminal_);
  }

  Result<void> run() {
    BatchSampler sampler(host_.driver(), options_.sampling.params(),
                         static_cast<std::int32_t>(options_.samples),
                         static_cast<std::uint64_t>(options_.sampling.seed));
    BatchSampler::Hooks hooks;
    hooks.prompt = [this](std::size_t index) { return tokens_of(rows_[index]); };
    hooks.done = [this](std::size_t, const std::vector<engine::Sample>& samples) -> Result<void> {
      for (const engine::Sample& sample : samples)
        TROUPE_TRY(print(sample));
      return {};
    };
    if (stream_)
      hooks.stepped = [this] { return printer_->show(host_.driver().engine()->drawn({0}, 0)); };
    return sampler.run(0, rows_.size(), hooks);
  }

 private:
  Result<std::vector<std::int32_t>> tokens_of(const data::PromptRow& row) {
    if (!options_.prompt_ids.empty()) return read_ids(options_.prompt_ids);
    std::vector<text::ChatMessage> messages;
    for (const data::ChatMessage& message : row.messages)
      messages.push_back({message.role, message.content});
    auto ids = messages.empty() ? host_.encode(row.prompt) : host_.encode_chat(messages);
    if (!ids) return fail(ids.error().within(row.where));
    return ids;
  }

  Result<void> print(const engine::Sample& sample) {
    if (stream_) {
      TROUPE_TRY(printer_->show(sample.tokens));
      return printer_->end();
    }
    TROUPE_TRY_ASSIGN(text, text_of(sample));
    if (options_.json) {
      print_json(sample, text);
    } else {
      std::printf("--- prompt %llu, sample %d (%.*s)\n",
                  static_cast<unsigned long long>(sample.group.value), sample.index,
                  static_cast<int>(engine::finish_name(sample.finish).size()),
                  engine::finish_name(sample.finish).data());
      std::printf("%s\n", (to_terminal_ ? observe::terminal_safe(text) : text).c_str());
    }
    std::fflush(stdout);
    return {};
  }

  // The tokens themselves, as --prompt-token-ids takes them, where there is no tokenizer.
  Result<std::string> text_of(const engine::Sample& sample) const {
    if (host_.has_tokenizer()) return host_.tokenizer().decode(sample.tokens, true);
    if (options_.json) return std::string();
    std::string ids;
    for (const std::int32_t token : sample.tokens)
      ids += (ids.empty() ? "" : ",") + std::to_string(token);
    return ids;
  }

  void print_json(const engine::Sample& sample, const std::string& text) const {
    const data::PromptRow& row = rows_[sample.group.value];
    nlohmann::ordered_json line = {{"prompt_id", sample.group.value},
                                   {"sample", sample.index},
                                   {"response", text},
                                   {"finish_reason", engine::finish_name(sample.finish)},
                                   {"tokens", sample.tokens},
                                   {"logprobs", sample.logprobs}};
    if (!options_.prompt_ids.empty()) {
      line["prompt_token_ids"] = nlohmann::ordered_json::parse("[" + options_.prompt_ids + "]");
    } else if (row.messages.empty()) {
      line["prompt"] = row.prompt;
    } else {
      line["messages"] = nlohmann::ordered_json::array();
      for (const auto& message : row.messages) {
        line["messages"].push_back({{"role", message.role}, {"content", message.content}});
      }
    }
    std::printf(
        "%s\n",
        line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }

  EngineHost& host_;
  const GenerateOptions& options_;
  std::vector<data::PromptRow> rows_;
  const bool stream_, to_terminal_;
  std::optional<StreamPrinter> printer_;
};

}  // namespace

Result<void> run_generate(Words words) {
  GenerateOptions options;
  std::vector<Flag> flags = {
      {"--model", &options.model, "Hugging Face folder or org/name", true},
      {"--prompt", &options.prompt, "the prompt"},
      {"--prompt-token-ids", &options.prompt_ids, "instead: its tokens, as 1,2,3"},
      {"--prompts", &options.prompts, "instead: a .jsonl or .json file of prompts"},
      {"--n", &options.samples, "samples of each prompt", false, 1, 1024},
      {"--json", &options.json, "one JSON object a sample, with tokens and log-probs"},
      {"--out", &options.out, "with --data: the .jsonl file to write, one row a sample"},
      {"--output-key", &options.output_key, "with --data: column of the response"},
      {"--overwrite", &options.overwrite, "with --data: begin anew, whatever --out holds"},
      {"--dtype", &options.dtype, kDtypeHelp},
      {"--device", &options.placement.device, kDeviceHelp},
      {"--threads", &options.placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  options.dataset.add_to(flags);
  options.sampling.add_to(flags);
  options.engine.add_to(flags);
  TROUPE_TRY_ASSIGN(outcome,
                    parse_flags("troupe generate: sample responses of a model", flags, words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype, panel_dtype("troupe generate", options.dtype, options.placement.device));
  const int sources = !options.prompt.empty() + !options.prompt_ids.empty() +
                      !options.prompts.empty() + !options.dataset.data.empty();
  if (sources != 1) {
    return fail(ErrorCode::kConfig,
                "troupe generate: give one of --prompt, --prompt-token-ids, --prompts and --data");
  }
  if (!options.prompt_ids.empty()) {
    TROUPE_TRY(read_ids(options.prompt_ids));
    if (options.dataset.chat) {
      return fail(ErrorCode::kConfig,
                  "troupe generate: --chat makes a dialogue of text; leave it out with "
                  "--prompt-token-ids");
    }
  }
  if (!options.dataset.data.empty()) {
    GenerateBatch job{options.model,     options.out,     options.output_key, options.samples,
                      options.placement, options.json,    options.overwrite,  dtype,
                      options.sampling,  options.dataset, options.engine};
    return generate_batch(job);
  }
  if (!options.out.empty()) {
    return fail(ErrorCode::kConfig, "troupe generate: --out goes with --data");
  }
  TROUPE_TRY_ASSIGN(rows, read_prompts(options));
  const TokenizerUse use =
      options.prompt_ids.empty() ? TokenizerUse::kNeeded : TokenizerUse::kIfThere;
  TROUPE_TRY_ASSIGN(host, EngineHost::load(options.model, options.placement,
                                           options.engine.limits(), dtype, use));
  if (!host->has_tokenizer()) {
    std::fprintf(stderr, "no tokenizer.json in %s: token ids stand for the text\n",
                 host->folder().c_str());
  }
  return Generation(*host, options, std::move(rows)).run();
}

}  // namespace troupe::app
