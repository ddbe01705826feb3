// Texts made from the configuration table.
#include "runtime/config/config_render.hpp"

#include "runtime/config/config_set.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

// What a section is about, for help pages and the reference.
std::string_view section_title(std::string_view section) {
  constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
      {"method", "what is trained"},
      {"actor", "the trained model and its optimiser"},
      {"critic", "the value model of gae and vtrace"},
      {"ref", "the frozen reference model"},
      {"rollout", "sampling of responses"},
      {"train", "batches, length, threads"},
      {"algo", "advantage, objective, KL"},
      {"data", "training prompts and rows"},
      {"reward", "scores"},
      {"dpo", "the loss of dpo, ipo and cdpo"},
      {"kto", "the loss of kto"},
      {"eval", "held-out evaluation"},
      {"cluster", "processes, other hosts, the door"},
      {"run", "where everything is written"},
      {"ckpt", "checkpoints"},
      {"resume", "going on with a run"},
      {"logger", "metrics beside metrics.jsonl"},
      {"log", "the terminal"},
  };
  for (const auto& [name, title] : kTitles) {
    if (name == section) return title;
  }
  return "";
}

// `text` broken at spaces; lines after the first start with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  std::size_t used = indent;
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (used > indent && used + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

// The defaults of one method, or the table's for several.
TrainConfig defaults_of(Methods methods) {
  const std::string name = method_names(methods);
  return name.find(',') == name.npos ? ConfigBuilder(name).current() : TrainConfig{};
}

// "int, 1 to 10 tokens, default 4".
std::string facts(const ConfigRow& row, const TrainConfig& defaults) {
  std::string out = row.type_name();
  if (const std::string range = row.range_text(); !range.empty()) {
    out += row.choices.empty() ? ", " + range : ": " + range;
  }
  if (!row.unit_text.empty() && row.min != row.max) {
    out += (row.range_text().empty() ? ", " : " ") + std::string(row.unit_text);
  }
  out += row.required ? ", needed" : ", default " + config_value_yaml(defaults, row);
  return out;
}

// "`1e-06`; rm `9e-6`".
std::string default_text(const ConfigRow& row) {
  std::string text = "`" + config_value_yaml(TrainConfig{}, row) + "`";
  for (const MethodDefault& entry : method_defaults()) {
    if (entry.key != row.name) continue;
    text += "; " + method_names(entry.methods) + " `" + std::string(entry.value) + "`";
  }
  return text;
}

std::string table_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

}  // namespace

std::vector<std::string_view> config_sections() {
  std::vector<std::string_view> out;
  for (const ConfigRow& row : config_table()) {
    if (out.empty() || out.back() != row.section()) out.push_back(row.section());
  }
  return out;
}

std::string config_yaml(const TrainConfig& config, const ConfigOrigins& origins) {
  std::string out;
  const Methods method = method_bit(config.method);
  std::vector<std::string> open;  // the sections that the last line stands in
  for (const ConfigRow& row : config_table()) {
    if ((row.methods & method) == 0) continue;
    std::vector<std::string> path;
    std::string_view rest = row.name;
    for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      path.emplace_back(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
    }
    std::size_t depth = 0;
    while (depth < open.size() && depth < path.size() && open[depth] == path[depth])
      ++depth;
    for (std::size_t i = depth; i < path.size(); ++i) {
      out += std::string(2 * i, ' ') + path[i] + ":\n";
    }
    open = path;
    out += std::string(2 * path.size(), ' ') + std::string(rest) + ": " +
           config_value_yaml(config, row);
    if (const auto origin = origins.find(row.name); origin != origins.end()) {
      std::string place = origin->second;
      std::replace_if(
          place.begin(), place.end(), [](char c) { return c < ' '; }, '?');
      out += "  # " + place;
    }
    out += '\n';
  }
  return out;
}

std::string config_overview(std::size_t columns, Methods methods) {
  std::string out;
  for (const std::string_view section : config_sections()) {
    std::string names;
    for (const ConfigRow& row : config_table()) {
      if (row.section() != section || (row.methods & methods) == 0) continue;
      if (!names.empty()) names += ' ';
      names += row.name == section ? row.name : row.name.substr(section.size() + 1);
    }
    if (names.empty()) continue;
    std::string head = "  " + std::string(section);
    head.resize(12, ' ');
    out += head + wrapped(names, 12, columns) + "\n";
  }
  return out;
}

std::string config_section_help(std::string_view section, std::size_t columns, Methods methods) {
  std::string out;
  const TrainConfig defaults = defaults_of(methods);
  for (const ConfigRow& row : config_table()) {
    if (row.section() != section || (row.methods & methods) == 0) continue;
    if (out.empty()) {
      out = std::string(section) + ": " + std::string(section_title(section)) + "\n";
    }
    out += "  --" + std::string(row.name) + "  (" + facts(row, defaults) + ")\n      " +
           wrapped(row.help_text, 6, columns) + "\n";
    if (!row.peer_text.empty()) {
      out += "      OpenRLHF: " + wrapped(row.peer_text, 16, columns) + "\n";
    }
  }
  return out;
}

std::string config_markdown() {
  std::string out =
      "# Configuration keys\n\n"
      "Made from the configuration table by `troupe config docs`; a test keeps it current.\n\n"
      "A key is a flag (`--actor.adam.lr 1e-6`), a word (`actor.adam.lr=1e-6`) and a YAML path\n"
      "(`actor: {adam: {lr: 1e-6}}`). Defaults are overridden by YAML files, left to right, and "
      "these\n"
      "by flags. An unknown key is an error. Each run writes all its values to\n"
      "`resolved_config.yaml`. Names are OpenRLHF's where it has them; the last column says where "
      "a\n"
      "name or default differs.\n";
  for (const std::string_view section : config_sections()) {
    out += "\n## " + std::string(section) + ": " + std::string(section_title(section)) + "\n\n";
    out += "| key | type | range | unit | default | meaning | OpenRLHF | read by |\n";
    out += "|---|---|---|---|---|---|---|---|\n";
    for (const ConfigRow& row : config_table()) {
      if (row.section() != section) continue;
      const std::string value = row.required ? "needed" : default_text(row);
      out += "| `" + std::string(row.name) + "` | " + row.type_name() + " | " +
             table_cell(row.range_text()) + " | " + std::string(row.unit_text) + " | " + value +
             " | " + table_cell(std::string(row.help_text)) + " | " +
             (row.peer_text.empty() ? "same" : table_cell(std::string(row.peer_text))) + " | " +
             (row.methods == kAllMethods ? "all" : method_names(row.methods)) + " |\n";
    }
  }
  return out;
}

std::vector<ConfigDifference> config_differences(const TrainConfig& before,
                                                 const TrainConfig& after) {
  std::vector<ConfigDifference> out;
  for (const ConfigRow& row : config_table()) {
    std::string old_value = config_value_yaml(before, row);
    std::string new_value = config_value_yaml(after, row);
    if (old_value != new_value) {
      out.push_back({row.name, std::move(old_value), std::move(new_value)});
    }
  }
  return out;
}

bool config_key_may_change(std::string_view name) {
  for (const std::string_view free : {"run.path",
                                      "resume",
                                      "ckpt.save_steps",
                                      "ckpt.max_num",
                                      "logger.tensorboard",
                                      "log.format",
                                      "train.threads",
                                      "eval.dataset",
                                      "eval.steps",
                                      "eval.n_samples_per_prompt",
                                      "eval.temperature",
                                      "eval.pass_score",
                                      "ckpt.best_metric_key",
                                      "log.names",
                                      "rollout.generators",
                                      "rollout.straggler_timeout_s",
                                      "rollout.max_num_seqs",
                                      "rollout.max_num_batched_tokens",
                                      "rollout.kv_cache_gb",
                                      "rollout.enable_prefix_caching",
                                      "rollout.enable_sleep",
                                      "reward.deadline_s",
                                      "reward.away_s",
                                      "log.trace"}) {
    if (name == free) return true;
  }
  return name.starts_with("cluster.");
}

}  // namespace troupe::config
