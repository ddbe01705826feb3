#include "runtime/data/supervised_dataset.hpp"

#include "runtime/data/limits.hpp"
#include "runtime/data/supervised_rows.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>
#include <set>

namespace troupe::data {

class SupervisedLoader {
 public:
  SupervisedLoader(const SupervisedColumns& columns,
                   const SupervisedLimits& limits,
                   const text::Tokenizer& tokenizer,
                   const text::ChatTemplate* chat)
      : columns_(columns), limits_(limits), coder_(tokenizer, chat, columns.add_special_tokens) {}

  // Reads the files of one set of a blend.
  Result<void> read_set(const std::string& set, std::string_view key) {
    TROUPE_TRY_ASSIGN(files, files_of_set(set));
    out_.set_rows_.push_back(0);
    for (const std::string& file : files)
      TROUPE_TRY(read(file, key));
    return {};
  }

  Result<void> read(const std::string& file, std::string_view key) {
    out_.files_.push_back(file);
    if (full()) return {};
    // Templates print whole integers; all other numbers are read as numbers.
    constexpr auto kNumbers = parse::Numbers::kWholeIntegers;
    const TakeRow take = [this](const Json& row, const std::string& where) -> Result<bool> {
      TROUPE_TRY_ASSIGN(coded, coded_row(row, columns_, coder_));
      note(coded, where);
      const std::uint64_t before = out_.rows_.size();
      TROUPE_TRY(add(coded, where));
      if (out_.rows_.size() > before) TROUPE_TRY(add_category(row, where));
      return !full();
    };
    return read_table(file, key, kNumbers, take);
  }

  Result<SupervisedDataset> finish(const std::string& files) {
    if (!out_.rows_.empty()) {
      out_.tokens_.shrink_to_fit();
      out_.learn_.shrink_to_fit();
      return std::move(out_);
    }
    return bad_row("dataset " + files + ": " +
                   (out_.dropped_ == 0
                        ? "holds no rows; add some or choose another"
                        : "all " + std::to_string(out_.dropped_) +
                              " rows are longer than --data.max_len " + std::to_string(longest())));
  }

 private:
  std::int64_t longest() const { return std::min(limits_.max_len, limits_.context); }

  bool full() const {
    const std::uint64_t rows = limits_.each_set ? out_.set_rows_.back() : out_.rows_.size();
    return limits_.max_samples > 0 && rows >= limits_.max_samples;
  }

  // Adds a note on how rows are read, at the first row of each format.
  void note(const CodedRow& coded, const std::string& where) {
    const bool known = coded.format != RowFormat::kColumns && coded.format != RowFormat::kStepwise;
    const bool chat = columns_.apply_chat_template || (known && columns_.input_template.empty());
    out_.has_chats_ = out_.has_chats_ || (chat && columns_.kind != RowKind::kText);
    const bool said_by_flag = coded.format == RowFormat::kMessages && columns_.apply_chat_template;
    if (coded.format != RowFormat::kColumns && !said_by_flag &&
        formats_.insert(coded.format).second) {
      const bool last = columns_.kind == RowKind::kAnswer && !columns_.multiturn;
      out_.notes_.push_back(format_note(
          where, coded.format, !columns_.input_template.empty(),
          last ? "the last answer is learned (all of them: --data.multiturn true)" : ""));
    }
    if (!coded.found.empty() && found_.insert(coded.found).second)
      out_.notes_.push_back(where + ": " + coded.found);
  }

  Result<void> add(const CodedRow& coded, const std::string& where) {
    const auto tokens = static_cast<std::int64_t>(
        coded.prompt.size() + std::max(coded.answer.size(), coded.rejected.size()));
    if (tokens > longest()) {
      if (limits_.drop_too_long) {
        ++out_.dropped_;
        return {};
      }
      const bool by_model = limits_.context < limits_.max_len;
      return bad_row(std::to_string(tokens) + " tokens, more than " +
                         (by_model ? "the model's context of " : "--data.max_len ") +
                         std::to_string(longest()),
                     "shorten it, or leave such rows out with --data.drop_too_long true");
    }
    for (const Tokens* part : {&coded.prompt, &coded.answer, &coded.rejected}) {
      for (const std::int32_t token : *part) {
        if (token >= 0 && token < limits_.vocab) continue;
        return bad_row("token id " + std::to_string(token) + " is outside the vocabulary of " +
                       std::to_string(limits_.vocab) +
                       ": the tokenizer does not belong to this model");
      }
    }
    SupervisedDataset::Place& place = out_.append(coded);
    place.file = static_cast<std::uint32_t>(out_.files_.size() - 1);
    // `where` is "train.jsonl:12" or "data.json item 12".
    place.line = std::strtoull(where.c_str() + where.find_last_of(": ") + 1, nullptr, 10);
    place.margin = coded.margin;
    place.desirable = coded.desirable;
    place.teacher = coded.teacher;
    if (!coded.shares.empty()) {
      place.soft = true;
      place.labels = out_.shares_.size();
      place.label_count = static_cast<std::uint32_t>(coded.shares.size());
      out_.shares_.insert(out_.shares_.end(), coded.shares.begin(), coded.shares.end());
    }
    ++out_.set_rows_.back();
    return {};
  }

  // Notes the category of the row that was added last.
  Result<void> add_category(const Json& row, const std::string& where) {
    const auto found = columns_.category_key.empty() ? row.end() : row.find(columns_.category_key);
    if (found == row.end() || found->is_null()) return {};
    const std::string name =
        found->is_string() ? found->get<std::string>() : parse::written_text(*found);
    auto& all = out_.categories_;
    auto place = std::find(all.begin(), all.end(), name);
    if (place == all.end()) {
      if (all.size() > limits::kCategories_max || name.size() > limits::kCategory_bytes_max) {
        return bad_row(
            where + ": column '" + columns_.category_key + "' names no categories: " +
                (name.size() > limits::kCategory_bytes_max
                     ? "a value of " + std::to_string(name.size()) + " bytes"
                     : "more than " + std::to_string(limits::kCategories_max) + " values"),
            "name another column, or none, with --eval.source_key");
      }
      place = all.insert(all.end(), name);
    }
    out_.rows_.back().category = static_cast<std::uint32_t>(place - all.begin());
    return {};
  }

  const SupervisedColumns& columns_;
  const SupervisedLimits& limits_;
  const DialogueCoder coder_;
  SupervisedDataset out_;
  std::set<RowFormat> formats_;
  std::set<std::string> found_;  // what was said of columns that no setting names
};

Result<SupervisedDataset> SupervisedDataset::load(const std::string& files,
                                                  std::string_view key,
                                                  const SupervisedColumns& columns,
                                                  const SupervisedLimits& limits,
                                                  const text::Tokenizer& tokenizer,
                                                  const text::ChatTemplate* chat) {
  SupervisedLoader loader(columns, limits, tokenizer, chat);
  for (const std::string& set : split_files(files))
    TROUPE_TRY(loader.read_set(set, key));
  return loader.finish(files);
}

SupervisedDataset::Place& SupervisedDataset::append(const TokenRow& row) {
  Place& place = rows_.emplace_back();
  place.begin = tokens_.size();
  place.prompt = static_cast<std::uint32_t>(row.prompt.size());
  place.answer = static_cast<std::uint32_t>(row.answer.size());
  place.rejected = static_cast<std::uint32_t>(row.rejected.size());
  for (const Tokens* part : {&row.prompt, &row.answer, &row.rejected})
    tokens_.insert(tokens_.end(), part->begin(), part->end());
  learn_.insert(learn_.end(), row.learn.begin(), row.learn.end());
  place.labels = labels_.size();
  place.label_count = static_cast<std::uint32_t>(row.labels.size());
  labels_.insert(labels_.end(), row.labels.begin(), row.labels.end());
  return place;
}

SupervisedDataset SupervisedDataset::of_tokens(std::span<const TokenRow> rows) {
  SupervisedDataset out;
  out.files_.emplace_back("tokens");
  out.set_rows_.push_back(rows.size());
  for (const TokenRow& row : rows) {
    Place& place = out.append(row);
    place.line = out.rows_.size();
    if (row.learn.empty() && row.prompt.empty() && row.rejected.empty()) {
      out.learn_.resize(out.tokens_.size(), 1);
      out.learn_[place.begin] = 0;
    }
  }
  return out;
}

SupervisedRow SupervisedDataset::row(std::uint64_t index) const {
  const Place& place = rows_[index];
  const std::span<const std::int32_t> all(tokens_);
  SupervisedRow row;
  row.id = index;
  row.prompt = all.subspan(place.begin, place.prompt);
  row.answer = all.subspan(place.begin + place.prompt, place.answer);
  row.rejected = all.subspan(place.begin + place.prompt + place.answer, place.rejected);
  if (!learn_.empty())
    row.learn = std::span<const std::uint8_t>(learn_).subspan(place.begin, place.answer);
  if (place.soft) {
    row.shares = std::span<const float>(shares_).subspan(place.labels, place.label_count);
  } else {
    row.labels = std::span<const std::int32_t>(labels_).subspan(place.labels, place.label_count);
  }
  row.margin = place.margin;
  row.desirable = place.desirable;
  row.teacher = place.teacher;
  row.category = categories_[place.category];
  row.file = files_[place.file];
  row.line = place.line;
  return row;
}

std::vector<SupervisedRow> SupervisedDataset::rows(std::span<const std::uint64_t> indices) const {
  std::vector<SupervisedRow> rows;
  rows.reserve(indices.size());
  for (const std::uint64_t index : indices)
    rows.push_back(row(index));
  return rows;
}

std::vector<SupervisedRow> SupervisedDataset::all() const {
  std::vector<SupervisedRow> rows;
  rows.reserve(size());
  for (std::uint64_t index = 0; index < size(); ++index)
    rows.push_back(row(index));
  return rows;
}

std::vector<std::uint64_t> SupervisedDataset::prompt_runs(std::uint64_t longest) const {
  std::vector<std::uint64_t> runs;
  for (std::uint64_t index = 0; index < size(); ++index) {
    if (runs.empty() || index - runs.back() >= longest ||
        !std::ranges::equal(row(index).prompt, row(index - 1).prompt)) {
      runs.push_back(index);
    }
  }
  return runs;
}

std::string SupervisedRow::where() const {
  return place_of_row(file, line);
}

}  // namespace troupe::data
