// `troupe eval --compare A B`.
#include "apps/troupe/batch/batch_progress.hpp"
#include "apps/troupe/batch/batch_sampler.hpp"
#include "apps/troupe/batch/comparison.hpp"
#include "apps/troupe/batch/eval_flags.hpp"
#include "apps/troupe/batch/output.hpp"
#include "apps/troupe/batch/responses.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <cstdio>
#include <map>
#include <utility>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& side) {
  std::error_code error;
  return fs::is_regular_file(side, error);
}

// The outcome of a pair in words, for --out.
std::string outcome_of(const ComparedPair& pair) {
  if (!pair.score_a || !pair.score_b) return "lost";
  return *pair.score_a > *pair.score_b ? "a" : *pair.score_a < *pair.score_b ? "b" : "tie";
}

Json score_json(const std::optional<double>& score) {
  return score ? Json(*score) : Json(nullptr);
}

class Comparing {
 public:
  explicit Comparing(const EvalFlags& flags) : flags_(flags) {}

  Result<void> run() {
    TROUPE_TRY(load_prompts());
    TROUPE_TRY_SET(source_, make_source());
    for (std::size_t i = 0; i < 2; ++i)
      TROUPE_TRY_SET(responses_[i], responses_of(flags_.sides[i]));
    TROUPE_TRY(pair_up());
    TROUPE_TRY(score());
    if (!flags_.out.empty()) TROUPE_TRY(write());
    print();
    return {};
  }

 private:
  Result<std::unique_ptr<actors::reward::RewardSource>> make_source() {
    if (flags_.pairs.model.empty())
      return flags_.reward.source(session::columns_of_rows(prompts_.rows(), "--data"));
    TROUPE_TRY_SET(team_, cli::make_team(flags_.placement));
    return flags_.prompts.model_source(flags_.pairs.model, false, *team_);
  }

  Result<void> load_prompts() {
    const bool first = is_file(flags_.sides[0]);
    const std::string& file = flags_.sides[first ? 0 : 1];
    if (flags_.prompts.data.empty() && !is_file(file)) {
      return fail(ErrorCode::kConfig, "troupe eval --compare: two models need prompts",
                  "give --data");
    }
    TROUPE_TRY_SET(prompts_, ComparedPrompts::load(flags_.prompts, file));
    return {};
  }

  Result<Responses> responses_of(const std::string& side) {
    if (is_file(side)) return prompts_.responses(flags_.prompts, side, flags_.response_key);
    if (flags_.prompts.data.empty()) {
      return fail(ErrorCode::kConfig, "troupe eval --compare: the model " + side + " needs prompts",
                  "give --data (a file that is not there is taken for a model)");
    }
    return sampled(side);
  }

  Result<Responses> sampled(const std::string& side) {
    TROUPE_TRY_ASSIGN(host, cli::EngineHost::load(side, flags_.placement, flags_.engine.limits()));
    TROUPE_TRY_ASSIGN(dataset, flags_.prompts.options());
    TROUPE_TRY_ASSIGN(prompts,
                      actors::data::DatasetPrompts::load(dataset, host->tokenizer(), host->chat()));
    BatchProgress progress("sampled", "prompts of " + side, 0, prompts->size());
    std::uint64_t tokens = 0;
    Responses all;
    BatchSampler sampler(host->driver(), flags_.sampling, flags_.samples);
    BatchSampler::Hooks hooks;
    hooks.prompt = [&](std::size_t index) -> Result<std::vector<std::int32_t>> {
      TROUPE_TRY_ASSIGN(prompt, prompts->at(index));
      return std::move(prompt.tokens);
    };
    hooks.done = [&](std::size_t index,
                     const std::vector<engine::Sample>& samples) -> Result<void> {
      std::vector<Response>& own = all.emplace_back();
      for (const engine::Sample& sample : samples) {
        tokens += sample.tokens.size();
        TROUPE_TRY_ASSIGN(text, host->tokenizer().decode(sample.tokens, true));
        own.push_back(response_of(std::move(text), static_cast<double>(sample.tokens.size())));
      }
      progress.at(index + 1, tokens);
      return {};
    };
    TROUPE_TRY(sampler.run(0, prompts->size(), hooks));
    return all;
  }

  // One group for each pair of responses: that of A, then that of B.
  Result<void> pair_up() {
    const auto& rows = prompts_.rows();
    in_tokens_ = true;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto &a = responses_[0][i], &b = responses_[1][i];
      if (a.size() != b.size() || a.empty()) {
        return fail(ErrorCode::kData,
                    rows[i].where + ": A has " + std::to_string(a.size()) +
                        " responses to this prompt and B " + std::to_string(b.size()),
                    "give the same number, at least one (--n)");
      }
      for (std::size_t k = 0; k < a.size(); ++k) {
        actors::RewardGroup group{rows[i].prompt, rows[i].label, rows[i].columns_json};
        group.messages = actors::data::chat_json(rows[i]);
        group.samples = {{a[k].text}, {b[k].text}};
        groups_.push_back(std::move(group));
        places_.emplace_back(i, k);
        in_tokens_ = in_tokens_ && a[k].tokens >= 0 && b[k].tokens >= 0;
      }
    }
    return {};
  }

  Result<void> score() {
    TROUPE_TRY_ASSIGN(scores, session::score_items(*source_, groups_, flags_.reward.deadline()));
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto [row, sample] = places_[i];
      const Response &a = responses_[0][row][sample], &b = responses_[1][row][sample];
      ComparedPair pair;
      pair.score_a = scores[2 * i].value;
      pair.score_b = scores[2 * i + 1].value;
      pair.length_a = in_tokens_ ? a.tokens : a.characters;
      pair.length_b = in_tokens_ ? b.tokens : b.characters;
      pair.source = source_of(parse::written_json<Json>(groups_[i].columns), flags_.source_key);
      for (const std::size_t side : {2 * i, 2 * i + 1})
        if (!scores[side].value && cause_.empty()) cause_ = scores[side].cause;
      pairs_.push_back(std::move(pair));
    }
    if (compare(pairs_).counted() > 0) return {};
    return fail(ErrorCode::kData, "no pair could be compared: " + cause_);
  }

  Result<void> write() const {
    std::string lines;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto [row, sample] = places_[i];
      Json line = parse::written_json<Json>(groups_[i].columns);
      line["prompt_id"] = row;
      line["sample"] = sample;
      line["response_a"] = groups_[i].samples[0].response;
      line["response_b"] = groups_[i].samples[1].response;
      line["score_a"] = score_json(pairs_[i].score_a);
      line["score_b"] = score_json(pairs_[i].score_b);
      line["better"] = outcome_of(pairs_[i]);
      lines += json_line(line);
    }
    return store::replace_file(flags_.out, lines);
  }

  // All pairs under "", then those of each source.
  std::map<std::string, Comparison> sets() const {
    std::map<std::string, std::vector<ComparedPair>> sources;
    for (const ComparedPair& pair : pairs_) {
      sources[""].push_back(pair);
      if (!pair.source.empty()) sources[pair.source].push_back(pair);
    }
    std::map<std::string, Comparison> sets;
    for (const auto& [name, some] : sources)
      sets.emplace(name, compare(some));
    return sets;
  }

  std::string data() const {
    return flags_.prompts.data.empty() ? flags_.sides[is_file(flags_.sides[0]) ? 0 : 1]
                                       : flags_.prompts.data;
  }
  std::string judge() const {
    return flags_.pairs.model.empty() ? source_->name() : flags_.pairs.model;
  }

  void print() const {
    const auto all = sets();
    if (flags_.json) return print_json(all);
    for (const auto& [name, of] : all)
      print_table(name.empty() ? data() : name, of);
    if (!cause_.empty())
      std::printf("lost pairs count for nothing; the first: %s\n", cause_.c_str());
  }

  void print_table(const std::string& name, const Comparison& of) const {
    std::printf("%s, %lu pairs judged by %s\n", name.c_str(), of.counted(), judge().c_str());
    std::printf("  %-32s %8s %8s %8s %8s %8s %12s\n", "", "win rate", "SE", "wins", "ties",
                "losses", in_tokens_ ? "tokens" : "characters");
    const Comparison other = of.swapped();
    for (const auto& [side, figures] : {std::pair(0, &of), std::pair(1, &other)}) {
      std::printf("  %-32s %8.4f %8.4f %8lu %8lu %8lu %12.1f\n", flags_.sides[side].c_str(),
                  figures->win_rate(), figures->standard_error(), figures->wins, figures->ties,
                  figures->losses, figures->length_a);
    }
    if (of.lost > 0) {
      std::printf("  lost, without a score %11s %8lu\n", "", of.lost);
    }
    if (of.unequal > 0) {
      std::printf("  the longer response wins %.4f of %lu decided pairs",
                  static_cast<double>(of.longer_wins) / static_cast<double>(of.unequal),
                  of.unequal);
      if (of.length_pearson && of.length_spearman) {
        std::printf("; margin and length: Pearson %+.3f, Spearman %+.3f", *of.length_pearson,
                    *of.length_spearman);
      }
      std::printf("\n");
    }
  }

  static Json figures_of(const Comparison& of) {
    Json out = {{"pairs", of.counted()},     {"wins", of.wins},         {"ties", of.ties},
                {"losses", of.losses},       {"lost", of.lost},         {"win_rate", of.win_rate()},
                {"se", of.standard_error()}, {"length_a", of.length_a}, {"length_b", of.length_b}};
    if (of.unequal > 0)
      out["longer_wins"] = static_cast<double>(of.longer_wins) / static_cast<double>(of.unequal);
    if (of.length_pearson) out["length_pearson"] = *of.length_pearson;
    if (of.length_spearman) out["length_spearman"] = *of.length_spearman;
    return out;
  }

  void print_json(const std::map<std::string, Comparison>& all) const {
    Json line = {{"a", flags_.sides[0]},
                 {"b", flags_.sides[1]},
                 {"data", data()},
                 {"judge", judge()},
                 {"length_unit", in_tokens_ ? "tokens" : "characters"}};
    for (const auto& [name, of] : all) {
      if (name.empty()) {
        line.update(figures_of(of));
      } else {
        line["sets"][name] = figures_of(of);
      }
    }
    std::printf("%s\n", line.dump().c_str());
  }

  const EvalFlags& flags_;
  std::unique_ptr<core::TeamRunner> team_;  // of a reward model
  std::unique_ptr<actors::reward::RewardSource> source_;
  ComparedPrompts prompts_;
  Responses responses_[2];
  std::vector<actors::RewardGroup> groups_;                  // one a pair
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // prompt and sample of each pair
  std::vector<ComparedPair> pairs_;
  bool in_tokens_ = true;
  std::string cause_;  // why the first lost pair is lost
};

}  // namespace

Result<void> compare_models(const EvalFlags& flags) {
  TROUPE_TRY(flags.reward.check_judge());
  if (!flags.pairs.model.empty() && flags.reward.given()) {
    return fail(ErrorCode::kConfig,
                "troupe eval --compare: give --reward-model or one of --rule, --python, --http, "
                "--judge");
  }
  if (flags.pairs.model.empty() && !flags.reward.given()) {
    return fail(
        ErrorCode::kConfig,
        "troupe eval --compare: no judge is given: give --judge and --rubric, or another reward");
  }
  TROUPE_TRY(flags.reward.check_label(flags.prompts.label_key));
  return Comparing(flags).run();
}

}  // namespace troupe::app
