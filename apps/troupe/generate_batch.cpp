#include "apps/troupe/generate_batch.hpp"

#include "apps/cli/engine_host.hpp"
#include "apps/cli/part_file.hpp"
#include "apps/troupe/batch/batch_progress.hpp"
#include "apps/troupe/batch/batch_sampler.hpp"
#include "apps/troupe/batch/json_line.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;
using Json = nlohmann::ordered_json;

PartSettings settings_of(const GenerateBatch& job,
                         const std::string& data,
                         const EngineHost& host) {
  char numbers[200];
  std::snprintf(numbers, sizeof numbers, "%.17g, top-p %.17g, top-k %lld, min-p %.17g",
                job.sampling.temperature, job.sampling.top_p,
                static_cast<long long>(job.sampling.top_k), job.sampling.min_p);
  PartSettings out = {{"--model", model_identity(host.folder())},
                      {"--data", data},
                      {"--n", std::to_string(job.samples)},
                      {"--dtype", kernels::name_of(job.dtype)},
                      {"--output-key", job.output_key},
                      {"--json", job.tokens ? "true" : "false"},
                      {"--max-new-tokens", std::to_string(job.sampling.max_new_tokens)},
                      {"--temperature", numbers},
                      {"--stop", Json(job.sampling.stop).dump()},
                      {"--seed", std::to_string(job.sampling.seed)}};
  for (auto& setting : job.prompts.settings())
    out.push_back(std::move(setting));
  return out;
}

// What cannot work is said before hours are spent.
Result<void> check_prompts(const GenerateBatch& job,
                           actors::DatasetPrompts& prompts,
                           std::int64_t context) {
  for (std::uint64_t i = 0; i < prompts.size(); ++i) {
    TROUPE_TRY_ASSIGN(prompt, prompts.at(i));
    const std::int64_t all = std::ssize(prompt.tokens) + job.sampling.max_new_tokens;
    const std::string row = "row " + std::to_string(i + 1) + " of " + job.prompts.data;
    if (all > context) {
      return fail(ErrorCode::kData, row + ": prompt and response may have " + std::to_string(all) +
                                        " tokens, more than the model's context of " +
                                        std::to_string(context) +
                                        "; lower --max-new-tokens or shorten it");
    }
    if (Json::parse(prompt.columns).contains(job.output_key)) {
      return fail(ErrorCode::kConfig, row + " has a column '" + job.output_key +
                                          "' already; name another with --output-key");
    }
  }
  return {};
}

class Batch {
 public:
  Batch(const GenerateBatch& job, EngineHost& host, actors::DatasetPrompts& prompts, PartFile& part)
      : job_(job),
        host_(host),
        prompts_(prompts),
        part_(part),
        progress_("sampled", "prompts", part.bundles(), prompts.size()) {}

  Result<void> run() {
    BatchSampler sampler(host_.driver(), job_.sampling.params(),
                         static_cast<std::int32_t>(job_.samples),
                         static_cast<std::uint64_t>(job_.sampling.seed));
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
    Json row = Json::parse(prompt.columns);
    const auto column = row.find(job_.prompts.input_key);
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
      if (job_.tokens) {
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

  const GenerateBatch& job_;
  EngineHost& host_;
  actors::DatasetPrompts& prompts_;
  PartFile& part_;
  BatchProgress progress_;
  std::uint64_t tokens_ = 0;  // of the responses sampled here
};

}  // namespace

Result<void> generate_batch(const GenerateBatch& job) {
  if (job.out.empty()) {
    return fail(ErrorCode::kConfig, "troupe generate --data needs --out, the .jsonl file to write");
  }
  TROUPE_TRY_ASSIGN(options, job.prompts.options());
  TROUPE_TRY_ASSIGN(data, files_identity(job.prompts.data));
  TROUPE_TRY_ASSIGN(host,
                    EngineHost::load(job.model, job.placement, job.engine.limits(), job.dtype));
  TROUPE_TRY_ASSIGN(prompts,
                    actors::DatasetPrompts::load(options, host->tokenizer(), host->chat()));
  for (const std::string& note : prompts->notes())
    std::fprintf(stderr, "%s\n", note.c_str());
  TROUPE_TRY(check_prompts(job, *prompts, host->context()));
  TROUPE_TRY_ASSIGN(part, PartFile::open(job.out, settings_of(job, data, *host),
                                         static_cast<std::uint64_t>(job.samples), job.overwrite));
  if (auto done = Batch(job, *host, *prompts, part).run(); !done) {
    core::Error error = done.error();
    if (error.code == ErrorCode::kInterrupted) {
      error.message = "interrupted after " + std::to_string(part.bundles()) + " of " +
                      std::to_string(prompts->size()) +
                      " prompts; the same command goes on from there";
    }
    return fail(std::move(error));
  }
  TROUPE_TRY(part.finish());
  std::printf("%s: %llu prompts x %lld samples\n", job.out.c_str(),
              static_cast<unsigned long long>(prompts->size()),
              static_cast<long long>(job.samples));
  return {};
}

}  // namespace troupe::app
