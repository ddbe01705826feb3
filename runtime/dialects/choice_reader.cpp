#include "runtime/dialects/choice_reader.hpp"

#include "runtime/store/sha256.hpp"

#include <algorithm>
#include <span>

namespace troupe::dialects {

namespace {

bool keeps_marks(const ServedModel& model, const GenerateRequest& request) {
  return request.tools && marks_are_special(model.tool_format);
}

}  // namespace

ChoiceReader::ChoiceReader(const ServedModel& model, const GenerateRequest& request)
    : request_(request),
      text_(model.tokenizer,
            request.sampling,
            request.skip_special_tokens && !keeps_marks(model, request),
            request.include_stop) {
  if (request.tools) reader_.emplace(model.tool_format, request.tool_names);
}

core::Result<ToolText> ChoiceReader::go_on(const engine::Sample& part) {
  note_version(part);
  TROUPE_TRY_ASSIGN(text, text_.go_on(part.tokens));
  tokens_ = text_.taken();
  return split(text, false);
}

core::Result<ToolText> ChoiceReader::finish(const engine::Sample& sample) {
  note_version(sample);
  if (request_.scores_only()) return ToolText();
  tokens_ = sample.tokens.size();
  const std::size_t told = std::min(text_.taken(), sample.tokens.size());
  TROUPE_TRY_ASSIGN(text, text_.end(std::span(sample.tokens).subspan(told), sample.finish));
  return split(text, true);
}

ToolText ChoiceReader::split(const std::string& text, bool at_end) {
  if (!reader_) return {text, {}, {}};
  ToolText out = at_end ? reader_->finish(text) : reader_->push(text);
  if (request_.one_call && !out.calls.empty()) {
    out.calls.resize(calls_ > 0 ? 0 : 1);
    out.places.resize(out.calls.size());
  }
  calls_ += out.calls.size();
  return out;
}

void ChoiceReader::note_version(const engine::Sample& sample) {
  if (!sample.versions.empty()) version_ = std::max(version_, sample.versions.back());
}

StopCause ChoiceReader::stop_cause(const engine::Sample& finished) const {
  if (text_.stop()) return *text_.stop();
  const auto& stops = request_.sampling.stop_tokens;
  if (finished.finish == engine::FinishReason::kStop && !finished.tokens.empty() &&
      std::find(stops.begin(), stops.end(), finished.tokens.back()) != stops.end()) {
    return finished.tokens.back();
  }
  return {};
}

std::string call_id(const ServedModel& model,
                    std::string_view prefix,
                    const std::string& answer_id,
                    std::size_t choice,
                    std::size_t index) {
  const std::string digest =
      store::sha256_text(answer_id + "/" + std::to_string(choice) + "/" + std::to_string(index));
  if (model.tool_format == ToolFormat::kMistral) return digest.substr(0, 9);
  return std::string(prefix) + digest.substr(0, 24);
}

}  // namespace troupe::dialects
