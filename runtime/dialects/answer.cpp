#include "runtime/dialects/answer.hpp"

#include "runtime/dialects/messages_answer.hpp"
#include "runtime/dialects/openai_answer.hpp"

#include <utility>

namespace troupe::dialects {

std::unique_ptr<Answer> make_answer(const ServedModel& model,
                                    const GenerateRequest& request,
                                    const std::vector<EncodedPrompt>& prompts,
                                    AnswerName name,
                                    core::Version version) {
  if (request.dialect == Dialect::kMessages) {
    return std::make_unique<MessagesAnswer>(model, request, prompts.front(), std::move(name),
                                            version);
  }
  return std::make_unique<OpenAiAnswer>(model, request, prompts, std::move(name), version);
}

}  // namespace troupe::dialects
