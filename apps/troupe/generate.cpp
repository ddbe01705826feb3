// `troupe generate`: samples responses to one prompt or a file of prompts.
#include "apps/troupe/commands.hpp"
#include "apps/troupe/engine_host.hpp"
#include "apps/troupe/flags.hpp"
#include "apps/troupe/sampling_flags.hpp"
#include "apps/troupe/stop_signal.hpp"
#include "apps/troupe/stream_printer.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;

struct Options {
  std::string model, prompt, prompts, input_key = "prompt";
  std::int64_t samples = 1, threads = 0;
  bool chat = false, json = false;
  SamplingFlags sampling;
};

// Prompts that are in the engine or wait to be printed; the others wait in the file's order.
constexpr std::size_t kOpenGroups_max = 256;

Result<std::vector<data::PromptRow>> read_prompts(const Options& options) {
  if (!options.prompts.empty()) {
    data::DatasetColumns columns;
    columns.input_key = options.input_key;
    columns.as_chat = options.chat;
    return data::load_prompts(options.prompts, columns);
  }
  data::PromptRow row;
  row.where = "--prompt";
  if (options.chat) {
    row.messages.push_back({"user", options.prompt});
  } else {
    row.prompt = options.prompt;
  }
  return std::vector<data::PromptRow>{std::move(row)};
}

class Generation {
 public:
  Generation(EngineHost& host, const Options& options, std::vector<data::PromptRow> rows)
      : host_(host),
        options_(options),
        rows_(std::move(rows)),
        stream_(rows_.size() == 1 && options.samples == 1 && !options.json),
        to_terminal_(::isatty(STDOUT_FILENO) == 1) {
    if (stream_) printer_.emplace(host.tokenizer(), to_terminal_);
  }

  Result<void> run() {
    engine::Engine& engine = host_.engine();
    for (;;) {
      if (stop_requested()) return fail(ErrorCode::kInterrupted, "interrupted");
      while (next_ < rows_.size() && next_ - printed_ < kOpenGroups_max) {
        TROUPE_TRY(submit(next_++));
      }
      if (engine.idle()) return {};
      TROUPE_TRY_ASSIGN(samples, engine.step());
      if (stream_) {
        TROUPE_TRY(printer_->show(engine.drawn({0}, 0)));
      }
      for (engine::Sample& sample : samples) {
        open_[sample.group.value].push_back(std::move(sample));
      }
      TROUPE_TRY(print_whole_groups());
    }
  }

 private:
  Result<void> submit(std::size_t index) {
    const data::PromptRow& row = rows_[index];
    std::vector<text::ChatMessage> messages;
    for (const data::ChatMessage& message : row.messages) {
      messages.push_back({message.role, message.content});
    }
    auto ids = messages.empty() ? host_.encode(row.prompt) : host_.encode_chat(messages);
    if (!ids) return fail(ids.error().within(row.where));
    engine::GroupRequest request;
    request.id.value = index;
    request.prompt = std::move(*ids);
    request.samples = static_cast<std::int32_t>(options_.samples);
    request.seed = core::derive_seed(static_cast<std::uint64_t>(options_.sampling.seed), index);
    request.sampling = options_.sampling.params();
    if (auto taken = host_.engine().submit(std::move(request)); !taken) {
      return fail(taken.error().within(row.where));
    }
    return {};
  }

  // Groups come out in the order of their prompts, samples by index, whatever finished first.
  Result<void> print_whole_groups() {
    for (;;) {
      const auto group = open_.find(printed_);
      if (group == open_.end() ||
          std::ssize(group->second) < static_cast<std::ptrdiff_t>(options_.samples)) {
        return {};
      }
      std::sort(group->second.begin(), group->second.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      for (const engine::Sample& sample : group->second)
        TROUPE_TRY(print(sample));
      open_.erase(group);
      ++printed_;
    }
  }

  Result<void> print(const engine::Sample& sample) {
    if (stream_) {
      TROUPE_TRY(printer_->show(sample.tokens));
      return printer_->end();
    }
    TROUPE_TRY_ASSIGN(text, host_.tokenizer().decode(sample.tokens, true));
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

  void print_json(const engine::Sample& sample, const std::string& text) const {
    const data::PromptRow& row = rows_[sample.group.value];
    nlohmann::ordered_json line = {{"prompt_id", sample.group.value},
                                   {"sample", sample.index},
                                   {"response", text},
                                   {"finish_reason", engine::finish_name(sample.finish)},
                                   {"tokens", sample.tokens},
                                   {"logprobs", sample.logprobs}};
    if (row.messages.empty()) {
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
  const Options& options_;
  std::vector<data::PromptRow> rows_;
  const bool stream_, to_terminal_;
  std::optional<StreamPrinter> printer_;
  std::size_t next_ = 0;     // the next prompt to submit
  std::size_t printed_ = 0;  // prompts whose samples have all been printed
  std::map<std::uint64_t, std::vector<engine::Sample>> open_;  // finished samples by prompt
};

}  // namespace

Result<void> run_generate(Words words) {
  Options options;
  std::vector<Flag> flags = {
      {"--model", &options.model, "Hugging Face folder or org/name", true},
      {"--prompt", &options.prompt, "the prompt"},
      {"--prompts", &options.prompts, "instead: a .jsonl or .json file of prompts"},
      {"--input-key", &options.input_key, "column of the prompt in that file"},
      {"--chat", &options.chat, "apply the model's chat template"},
      {"--n", &options.samples, "samples of each prompt", false, 1, 1024},
      {"--json", &options.json, "one JSON object a sample, with tokens and log-probs"},
      {"--threads", &options.threads, "0 = all usable cores", false, 0, 1024}};
  options.sampling.add_to(flags);
  TROUPE_TRY_ASSIGN(outcome,
                    parse_flags("troupe generate: sample responses of a model", flags, words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  if (options.prompt.empty() == options.prompts.empty()) {
    return fail(ErrorCode::kConfig, "troupe generate: give --prompt or --prompts, not both");
  }
  TROUPE_TRY_ASSIGN(rows, read_prompts(options));
  TROUPE_TRY_ASSIGN(host, EngineHost::load(options.model, options.threads));
  return Generation(*host, options, std::move(rows)).run();
}

}  // namespace troupe::app
