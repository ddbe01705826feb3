// What `troupe serve` refuses and how, by the real program: bodies and headers that are made to
// cost or to confuse, fields and roles that are none, and mistakes of the command line.
#include "serve_support.hpp"

#include <sys/stat.h>

#include <set>

namespace troupe::test {
namespace {

using nlohmann::json;

std::string message_of(const HttpAnswer& answer) {
  const json body = answer.json();
  return body.is_object() && body.contains("error") ? body["error"]["message"].get<std::string>()
                                                    : answer.body;
}

// The port on which a process listens, before it has said anything; 0: none so far.
int listening_port(pid_t pid) {
  const std::filesystem::path root = "/proc/" + std::to_string(pid);
  std::set<std::string> sockets;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(root / "fd", code)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), code).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::ifstream table(root / "net" / "tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, again, uid, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> again >> uid >> timeout >>
        inode;
    if (state == "0A" && sockets.contains(inode)) {
      return static_cast<int>(std::strtoul(local.c_str() + local.find(':') + 1, nullptr, 16));
    }
  }
  return 0;
}

}  // namespace

TEST(ServeStrict, WhatIsRefusedCostsTheOthersNothing) {
  Served served;
  // Requests that are none of OpenAI's, each by its name.
  struct Bad {
    const char *path, *body, *param, *says;
  };
  const Bad table[] = {
      {"/v1/completions", R"({"prompt":"a","temprature":1})", "temprature",
       "did you mean 'temperature'?"},
      {"/v1/chat/completions", R"({"messages":[{"role":"alien","content":"a"}]})",
       "messages[0].role", "is none of"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user"}]})", "messages[0].content",
       "is missing"},
      {"/tokenize", R"({"messages":[{"role":"alien","content":"a"}]})", "messages[0].role",
       "is none of"},
  };
  for (const Bad& bad : table) {
    const HttpAnswer answer = served.call("POST", bad.path, bad.body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], bad.param) << answer.body;
    EXPECT_NE(message_of(answer).find(bad.says), std::string::npos) << answer.body;
  }
  // The engine's own refusal, without the engine's number of the request.
  const HttpAnswer engine = served.post("/v1/completions", {{"prompt", "a"}, {"min_tokens", 17}});
  EXPECT_EQ(engine.status, 400);
  EXPECT_EQ(message_of(engine).find("group"), std::string::npos) << engine.body;
  EXPECT_TRUE(message_of(engine).starts_with("min_new_tokens")) << engine.body;
  // What there is here.
  EXPECT_EQ(served.call("GET", "/v1/models/").status, 404);
  EXPECT_EQ(served.call("GET", "/v1/models/tiny").json()["id"], "tiny");
  for (const char* path : {"/", "/v1", "/v1/"}) {
    const json paths = served.call("GET", path).json()["paths"];
    const json one = {{"method", "POST"}, {"path", "/v1/completions"}};
    EXPECT_NE(std::find(paths.begin(), paths.end(), one), paths.end()) << path << paths;
    EXPECT_EQ(served.call("POST", path).status, 405);
  }
  // Headers that a proxy may read otherwise; nothing behind them is read as a request.
  const auto raw = [&](const std::string& lines) {
    Caller caller(served.port);
    caller.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n" +
                http_request("GET", "/version"));
    return caller.answer();
  };
  const HttpAnswer coding = raw("Transfer-Encoding: xchunked\r\n");
  EXPECT_EQ(coding.status, 501) << coding.body;
  EXPECT_NE(message_of(coding).find("chunked"), std::string::npos) << coding.body;
  EXPECT_EQ(raw("X: a\r\n b\r\n").status, 400);
  // Big bodies, several at a time: each is refused where its bound is passed, and the memory that
  // they took goes back.
  EXPECT_EQ(served.post("/v1/completions", {{"prompt", "a"}}).status, 200);
  const double before_mb = served.program().memory_mb("VmRSS:");
  std::string biases = R"({"prompt":"a","logit_bias":{"0":1)";
  for (int i = 1; i < 800'000; ++i)
    biases += ",\"" + std::to_string(i) + "\":1";
  biases += "}}";
  const std::string text(12u << 20, 'a');
  const std::pair<const char*, std::string> bodies[] = {
      {"/v1/completions", biases},
      {"/v1/completions", biases},
      {"/v1/completions", "{\"prompt\":\"" + text + "\"}"},
      {"/tokenize", "{\"prompt\":\"" + text + "\"}"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":")" + text + "\"}]}"},
      {"/nowhere", biases}};
  std::vector<Caller> callers;
  for (const auto& [path, body] : bodies) {
    callers.emplace_back(served.port);
    ASSERT_TRUE(callers.back().send(http_request("POST", path, body)));
  }
  std::vector<HttpAnswer> answers;
  for (Caller& caller : callers)
    answers.push_back(caller.answer());
  EXPECT_EQ(message_of(answers[0]), "'logit_bias' holds more than the 1024 entries that are taken");
  for (std::size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(answers[i].status, i == 5 ? 404 : 400) << answers[i].body;
  EXPECT_TRUE(within(20, [&] { return served.program().memory_mb("VmRSS:") < before_mb + 24; }))
      << before_mb << " MiB became " << served.program().memory_mb("VmRSS:");
}

TEST(ServeStrict, ThePortIsTakenFirst) {
  const ScratchFolder folder;
  const std::string model = make_long_tiny_model(folder);
  // While the template is not there, the server is not either; its port is, and says so.
  const std::string fifo = (folder / "template").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Background program({troupe_program(), "serve", model + "/", "--port", "0", "--threads", "1",
                      "--chat-template", fifo},
                     folder / "log.txt");
  int port = 0;
  ASSERT_TRUE(within(60, [&] {
    port = listening_port(program.pid());
    return port > 0 || !program.running();
  }));
  ASSERT_GT(port, 0) << program.text();
  const auto call = [&](const std::string& path) {
    Caller caller(static_cast<std::uint16_t>(port));
    caller.send(http_request("GET", path));
    return caller.answer();
  };
  const HttpAnswer early = call("/health");
  EXPECT_EQ(early.status, 503);
  EXPECT_NE(message_of(early).find("being loaded"), std::string::npos) << early.body;
  EXPECT_NE(early.head.find("Retry-After"), early.head.npos) << early.head;
  EXPECT_EQ(program.text(), "");
  // Nobody else gets the port, and hears so before his model, which has no weights, is loaded.
  const ScratchFolder other;
  const std::string empty = make_long_tiny_model(other);
  std::filesystem::remove(std::filesystem::path(empty) / "model.safetensors");
  const Ended second =
      troupe_ends({"serve", empty, "--port", std::to_string(port)}, other / "log.txt", 30);
  EXPECT_EQ(second.status, 3) << second.text;
  EXPECT_NE(second.text.find("--port " + std::to_string(port) + ": "), std::string::npos)
      << second.text;
  EXPECT_NE(second.text.find("the port is taken"), std::string::npos) << second.text;
  std::ofstream(fifo) << "{{ messages[0].content }}";
  ASSERT_TRUE(within(60, [&] { return program.says("/v1\n") || !program.running(); }));
  EXPECT_TRUE(
      program.text().starts_with("serving tiny at http://127.0.0.1:" + std::to_string(port)))
      << program.text();
  EXPECT_EQ(call("/health").status, 200);
}

TEST(ServeStrict, WithoutATokenizerTokensComeAndGo) {
  const ScratchFolder folder;
  const auto bare = [](const ScratchFolder& at) {
    const std::string path = make_long_tiny_model(at);
    std::filesystem::remove(std::filesystem::path(path) / "tokenizer.json");
    std::filesystem::remove(std::filesystem::path(path) / "tokenizer_config.json");
    return path;
  };
  const std::string whole = make_long_tiny_model(folder);
  const ScratchFolder other;
  const std::string ids_only = bare(other);
  // What the same weights answer with their tokenizer.
  const std::vector<std::string> greedy = {"--temperature", "0", "--max-new-tokens", "12", "--json",
                                           "--threads",     "1"};
  const auto generate = [&](const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> words = {"generate", "--model", model};
    words.insert(words.end(), greedy.begin(), greedy.end());
    words.insert(words.end(), more.begin(), more.end());
    return troupe_ends(words, folder / "generate.txt", 30);
  };
  const auto object_in = [](const std::string& text) {
    const auto begin = text.find('{');
    return begin == text.npos ? json() : json::parse(text.substr(begin), nullptr, false);
  };
  const json expected = object_in(generate(whole, {"--prompt", "ab"}).text)["tokens"];
  ASSERT_EQ(expected.size(), 12u);
  const Ended drawn = generate(ids_only, {"--prompt-token-ids", "97,98"});
  EXPECT_EQ(drawn.status, 0) << drawn.text;
  EXPECT_TRUE(drawn.text.starts_with("no tokenizer.json in ")) << drawn.text;
  EXPECT_EQ(object_in(drawn.text)["tokens"], expected) << drawn.text;
  EXPECT_EQ(object_in(drawn.text)["prompt_token_ids"], (json{97, 98}));
  EXPECT_EQ(object_in(drawn.text)["response"], "");
  EXPECT_EQ(object_in(generate(whole, {"--prompt-token-ids", "97,98"}).text)["tokens"], expected);
  EXPECT_EQ(generate(ids_only, {"--prompt-token-ids", "97,,98"}).status, 2);
  // A server says which flag it wants, and with it takes ids and gives ids.
  const Ended refused = troupe_ends({"serve", ids_only, "--port", "0"}, folder / "log.txt", 30);
  EXPECT_EQ(refused.status, 2) << refused.text;
  EXPECT_NE(refused.text.find("--skip-tokenizer-init"), std::string::npos) << refused.text;
  Served served({"--skip-tokenizer-init"}, bare);
  EXPECT_TRUE(served.program().says("no tokenizer: ")) << served.program().text();
  const json request = {
      {"prompt", {97, 98}}, {"max_tokens", 12}, {"temperature", 0}, {"logprobs", 1}};
  const json choice = served.post("/v1/completions", request).json()["choices"][0];
  EXPECT_EQ(choice["token_ids"], expected) << choice;
  EXPECT_EQ(choice["text"], "");
  EXPECT_EQ(choice["logprobs"]["tokens"][0], "token_id:" + expected[0].dump());
  json streamed = request;
  streamed["stream"] = true;
  json told = json::array();
  for (const json& event : events(served.post("/v1/completions", streamed).body)) {
    for (const json& id : event["choices"][0]["token_ids"])
      told.push_back(id);
  }
  EXPECT_EQ(told, expected);
  const std::pair<const char*, json> texts[] = {
      {"/v1/completions", {{"prompt", "ab"}}},
      {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "a"}}}}}},
      {"/v1/completions", {{"prompt", {97}}, {"stop", "x"}}},
      {"/tokenize", {{"prompt", "ab"}}},
      {"/detokenize", {{"tokens", {97}}}}};
  for (const auto& [path, body] : texts) {
    const HttpAnswer answer = served.post(path, body);
    EXPECT_TRUE(answer.status == 400 || answer.status == 404) << answer.body;
    EXPECT_NE(message_of(answer).find("tokenizer"), std::string::npos) << path << answer.body;
  }
}

}  // namespace troupe::test
