// `troupe chat` at a terminal: what is seen while it loads and answers, and what becomes of keys
// that are pressed meanwhile.
#include "serve_support.hpp"
#include "terminal.hpp"

#include <algorithm>

namespace troupe::test {

TEST(Chat, SaysThatItLoadsAndKeepsKeysOutOfItsAnswers) {
  const ScratchFolder folder;
  // The likeliest token is never the end: an answer goes on until it is stopped.
  const std::string model = make_model(folder, long_tiny_spec(), [](model::ParamStore& params) {
    const auto head = params.view("lm_head.weight");
    std::fill(head.end() - long_tiny_spec().hidden, head.end(), 0.0f);
  });
  std::ofstream(std::filesystem::path(model) / "tokenizer_config.json")
      << R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>",)"
         R"( "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})";
  Terminal chat({troupe_program(), "chat", model, "--threads", "1", "--temperature", "0",
                 "--max-new-tokens", "60000"});
  // Before the model is there: a line that is taken at the first prompt.
  ASSERT_TRUE(chat.shows("loading " + model + " ...\r\n")) << chat.screen();
  chat.type("first\n");
  ASSERT_TRUE(chat.shows("> first\r\n")) << chat.screen();
  ASSERT_TRUE(chat.shows_more_than(chat.screen().size())) << chat.screen();
  // While it answers: a whole line, edited, and the beginning of one.
  chat.type("/helk\x7fp\n/qui");
  const std::size_t answered = chat.screen().size();
  ASSERT_TRUE(chat.shows_more_than(answered + 16)) << chat.screen();
  EXPECT_FALSE(chat.echoes());
  chat.type("\x03");
  ASSERT_TRUE(chat.shows("> /help\r\n", answered)) << chat.screen();
  ASSERT_TRUE(chat.shows("> /qui", answered)) << chat.screen();
  EXPECT_NE(chat.screen().find("/quit or /exit ends\r\n", answered), std::string::npos);
  EXPECT_EQ(chat.count("first"), 1u) << chat.screen();
  EXPECT_EQ(chat.count("/help"), 2u) << "in the greeting and at its prompt: " << chat.screen();
  EXPECT_EQ(chat.count("/helk"), 0u) << chat.screen();
  ASSERT_TRUE(within(20, [&] { return chat.echoes(); }));
  chat.type("t\n");
  EXPECT_EQ(chat.ends(), 0) << chat.screen();
  EXPECT_TRUE(chat.echoes()) << "the terminal is as it was";
}

}  // namespace troupe::test
