// `troupe generate`: samples responses of a model. Prints those to --prompt, --prompt-token-ids or
// --prompts; writes those to the prompts of --data to a file, and can resume that.
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/engine_host.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/part_file.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/troupe/batch/batch_progress.hpp"
#include "apps/troupe/batch/batch_sampler.hpp"
#include "apps/troupe/batch/output.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/stream_printer.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/observe/terminal_text.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

namespace troupe::app {
namespace {

struct GenerateOptions {
  std::string model, prompt, prompt_ids, prompts, out, output_key = "response", dtype = "f32";
  std::int64_t samples = 1;
  cli::Placement placement;
  cli::EngineFlags engine;
  bool json = false, overwrite = false;
  PromptFlags dataset;
  cli::SamplingFlags sampling;
};

Result<std::vector<data::PromptRow>> read_prompts(const GenerateOptions& options) {
  if (!options.prompts.empty()) {
    data::DatasetColumns columns;
    columns.input_key = options.dataset.input_key;
    columns.apply_chat_template = options.dataset.chat;
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

// Parses token ids such as "1,2,3".
Result<std::vector<std::int32_t>> read_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  for (const std::string_view word : core::split(text, ",")) {
    const std::int32_t id = core::number_of<std::int32_t>(word).value_or(-1);
    if (id < 0) {
      return fail(ErrorCode::kConfig,
                  "--prompt-token-ids: '" + std::string(word) + "' is not a token id",
                  "give them as 1,2,3");
    }
    ids.push_back(id);
  }
  return ids;
}

class Generation {
 public:
  Generation(cli::EngineHost& host,
             const GenerateOptions& options,
             std::vector<data::PromptRow> rows)
      : host_(host),
        options_(options),
        rows_(std::move(rows)),
        stream_(rows_.size() == 1 && options.samples == 1 && !options.json && host.has_tokenizer()),
        to_terminal_(::isatty(STDOUT_FILENO) == 1) {
    if (stream_) printer_.emplace(host.tokenizer(), to_terminal_);
  }

  Result<void> run() {
    BatchSampler sampler(host_.driver(), options_.sampling, options_.samples);
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
    auto ids = row.messages.empty() ? host_.encode(row.prompt, options_.dataset.special)
                                    : host_.encode_chat(row.messages, row.inputs);
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
      std::printf("--- prompt %lu, sample %d (%.*s)\n", sample.group.value, sample.index,
                  static_cast<int>(engine::finish_name(sample.finish).size()),
                  engine::finish_name(sample.finish).data());
      std::printf("%s\n", (to_terminal_ ? observe::terminal_safe(text) : text).c_str());
    }
    std::fflush(stdout);
    return {};
  }

  // The decoded response. Without a tokenizer: its token ids, as --prompt-token-ids takes them, or
  // nothing for --json, which prints the ids anyway.
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
    Json line = {{"prompt_id", sample.group.value},
                 {"sample", sample.index},
                 {"response", text},
                 {"finish_reason", engine::finish_name(sample.finish)},
                 {"tokens", sample.tokens},
                 {"logprobs", sample.logprobs}};
    if (!options_.prompt_ids.empty()) {
      line["prompt_token_ids"] = Json::parse("[" + options_.prompt_ids + "]");
    } else if (row.messages.empty()) {
      line["prompt"] = row.prompt;
    } else {
      line["messages"] = Json::parse(text::to_json(row.messages));
    }
    std::fputs(json_line(line).c_str(), stdout);
  }

  cli::EngineHost& host_;
  const GenerateOptions& options_;
  std::vector<data::PromptRow> rows_;
  const bool stream_, to_terminal_;
  std::optional<StreamPrinter> printer_;
};

// The settings that the content of --out depends on.
cli::PartSettings settings_of(const GenerateOptions& job,
                              kernels::PanelDtype dtype,
                              const std::string& data,
                              const cli::EngineHost& host) {
  const std::string numbers =
      core::printed("%.17g, top-p %.17g, top-k %ld, min-p %.17g", job.sampling.temperature,
                    job.sampling.top_p, job.sampling.top_k, job.sampling.min_p);
  cli::PartSettings out = {{"--model", cli::model_identity(host.folder())},
                           {"--data", data},
                           {"--n", std::to_string(job.samples)},
                           {"--dtype", kernels::name_of(dtype)},
                           {"--output-key", job.output_key},
                           {"--json", job.json ? "true" : "false"},
                           {"--max-new-tokens", std::to_string(job.sampling.max_new_tokens)},
                           {"--temperature", numbers},
                           {"--stop", Json(job.sampling.stop).dump()},
                           {"--seed", std::to_string(job.sampling.seed)}};
  for (auto& setting : job.dataset.settings())
    out.push_back(std::move(setting));
  // Only where it makes a difference, as a part of an older version lacks it.
  if (!host.tokenizer().front().empty())
    out.emplace_back("--add-special-tokens", job.dataset.special ? "true" : "false");
  return out;
}

// Refuses the whole job if a prompt cannot be sampled, before any sampling is done.
Result<void> check_prompts(const GenerateOptions& job,
                           actors::data::DatasetPrompts& prompts,
                           std::int64_t context) {
  for (std::uint64_t i = 0; i < prompts.size(); ++i) {
    TROUPE_TRY_ASSIGN(prompt, prompts.at(i));
    const std::int64_t all = std::ssize(prompt.tokens) + job.sampling.max_new_tokens;
    const std::string row = "row " + std::to_string(i + 1) + " of " + job.dataset.data;
    if (all > context) {
      return fail(ErrorCode::kData,
                  row + ": prompt and response may have " + std::to_string(all) +
                      " tokens, more than the model's context of " + std::to_string(context),
                  "lower --max-new-tokens or shorten it");
    }
    if (parse::written_json<Json>(prompt.columns).contains(job.output_key)) {
      return fail(ErrorCode::kConfig, row + " has a column '" + job.output_key + "' already",
                  "name another with --output-key");
    }
  }
  return {};
}

// Samples every prompt of a dataset into a .jsonl file, one row per sample.
class Batch {
 public:
  Batch(const GenerateOptions& job,
        cli::EngineHost& host,
        actors::data::DatasetPrompts& prompts,
        cli::PartFile& part)
      : job_(job),
        host_(host),
        prompts_(prompts),
        part_(part),
        progress_("sampled", "prompts", part.bundles(), prompts.size()) {}

  Result<void> run() {
    BatchSampler sampler(host_.driver(), job_.sampling, job_.samples);
    BatchSampler::Hooks hooks;
    hooks.prompt = [this](std::size_t index) { return tokens_of(index); };
    hooks.done = [this](std::size_t index, std::vector<engine::Sample> samples) {
      return write(index, samples);
    };
    hooks.stepped = [this]() -> Result<void> {
      progress_.at(part_.bundles(), tokens_);
      return {};
    };
    return sampler.run(part_.bundles(), prompts_.size(), hooks);
  }

 private:
  Result<std::vector<std::int32_t>> tokens_of(std::size_t index) {
    TROUPE_TRY_ASSIGN(prompt, prompts_.at(index));
    return std::move(prompt.tokens);
  }

  Result<void> write(std::size_t index, const std::vector<engine::Sample>& samples) {
    TROUPE_TRY_ASSIGN(prompt, prompts_.at(index));
    Json row = parse::written_json<Json>(prompt.columns);
    const auto column = row.find(data::prompt_column(row, job_.dataset.input_key));
    const bool as_column = column != row.end() && column->is_string() &&
                           column->get_ref<const std::string&>() == prompt.text;
    if (!as_column) row["rendered_prompt"] = prompt.text;
    std::string lines;
    for (const engine::Sample& sample : samples) {
      TROUPE_TRY_ASSIGN(text, host_.tokenizer().decode(sample.tokens, true));
      row["prompt_id"] = index;
      row["sample"] = sample.index;
      row[job_.output_key] = std::move(text);
      row["finish_reason"] = engine::finish_name(sample.finish);
      row["response_tokens"] = sample.tokens.size();
      if (job_.json) {
        row["tokens"] = sample.tokens;
        row["logprobs"] = sample.logprobs;
      }
      tokens_ += sample.tokens.size();
      lines += json_line(row);
    }
    TROUPE_TRY(part_.append(lines, 1));
    progress_.at(part_.bundles(), tokens_);
    return {};
  }

  const GenerateOptions& job_;
  cli::EngineHost& host_;
  actors::data::DatasetPrompts& prompts_;
  cli::PartFile& part_;
  BatchProgress progress_;
  std::uint64_t tokens_ = 0;  // of the responses sampled since this process started
};

// `troupe generate --data`; see docs/batch.md. Errors: those of loading and sampling; kInterrupted
// after a signal. The same command resumes the work.
Result<void> generate_batch(const GenerateOptions& job, kernels::PanelDtype dtype) {
  if (job.out.empty())
    return fail(ErrorCode::kConfig, "troupe generate --data needs --out, the .jsonl file to write");
  TROUPE_TRY_ASSIGN(options, job.dataset.options());
  TROUPE_TRY_ASSIGN(data, cli::files_identity(job.dataset.data));
  TROUPE_TRY_ASSIGN(host,
                    cli::EngineHost::load(job.model, job.placement, job.engine.limits(), dtype));
  TROUPE_TRY_ASSIGN(prompts,
                    actors::data::DatasetPrompts::load(options, host->tokenizer(), host->chat()));
  for (const std::string& note : prompts->notes())
    std::fprintf(stderr, "%s\n", note.c_str());
  TROUPE_TRY(check_prompts(job, *prompts, host->context()));
  TROUPE_TRY_ASSIGN(part,
                    cli::PartFile::open(job.out, settings_of(job, dtype, data, *host),
                                        static_cast<std::uint64_t>(job.samples), job.overwrite));
  if (auto done = Batch(job, *host, *prompts, part).run(); !done) {
    core::Error error = done.error();
    if (error.code == ErrorCode::kInterrupted) {
      error.message = "interrupted after " + std::to_string(part.bundles()) + " of " +
                      std::to_string(prompts->size()) +
                      " prompts; the same command continues from there";
    }
    return fail(std::move(error));
  }
  TROUPE_TRY(part.finish());
  std::printf("%s: %lu prompts x %ld samples\n", job.out.c_str(), prompts->size(), job.samples);
  return {};
}

}  // namespace

Result<void> run_generate(cli::Words words) {
  GenerateOptions options;
  std::vector<cli::Flag> flags = {
      {"--model", &options.model, "Hugging Face folder or OWNER/NAME", true},
      {"--prompt", &options.prompt, "the prompt"},
      {"--prompt-token-ids", &options.prompt_ids, "the prompt's tokens, such as 1,2,3"},
      {"--prompts", &options.prompts, "a file of rows with many prompts"},
      {"--n", &options.samples, "samples of each prompt", false, 1, 1024},
      {"--json", &options.json, "one JSON object a sample, with tokens and log-probs"},
      {"--out", &options.out, "with --data: the .jsonl file to write, one row a sample"},
      {"--output-key", &options.output_key, "with --data: column of the response"},
      {"--overwrite", &options.overwrite, "with --data: begin anew, whatever --out holds"},
      {"--dtype", &options.dtype, cli::kDtypeHelp},
      {"--device", &options.placement.device, cli::kDeviceHelp},
      {"--threads", &options.placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  options.dataset.add_to(flags);
  options.sampling.add_to(flags);
  options.engine.add_to(flags);
  TROUPE_TRY_ASSIGN(outcome,
                    cli::parse_flags("troupe generate: sample responses of a model", flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype,
                    cli::panel_dtype("troupe generate", options.dtype, options.placement.device));
  const int sources = !options.prompt.empty() + !options.prompt_ids.empty() +
                      !options.prompts.empty() + !options.dataset.data.empty();
  if (sources != 1) {
    return fail(ErrorCode::kConfig,
                "troupe generate: give one of --prompt, --prompt-token-ids, --prompts and --data");
  }
  if (!options.prompt_ids.empty()) {
    TROUPE_TRY(read_ids(options.prompt_ids));
    if (options.dataset.chat) {
      return fail(ErrorCode::kConfig, "troupe generate: --chat makes a dialogue of text",
                  "leave it out with --prompt-token-ids");
    }
  }
  if (!options.dataset.data.empty()) return generate_batch(options, dtype);
  if (!options.out.empty())
    return fail(ErrorCode::kConfig, "troupe generate: --out goes with --data");
  TROUPE_TRY_ASSIGN(rows, read_prompts(options));
  const cli::TokenizerUse use =
      options.prompt_ids.empty() ? cli::TokenizerUse::kNeeded : cli::TokenizerUse::kIfThere;
  TROUPE_TRY_ASSIGN(host, cli::EngineHost::load(options.model, options.placement,
                                                options.engine.limits(), dtype, use));
  if (!host->has_tokenizer()) {
    std::fprintf(stderr, "no tokenizer.json in %s: token ids stand for the text\n",
                 host->folder().c_str());
  }
  return Generation(*host, options, std::move(rows)).run();
}

}  // namespace troupe::app
