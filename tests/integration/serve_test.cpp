// `troupe serve` with the real program on a tiny model: answers whole and streamed, many at once,
// clients that go in the middle, bad input, keys, and too many at a time.
#include "serve_support.hpp"

#include <set>

namespace troupe::test {
namespace {

using nlohmann::json;

const json kLong = {{"prompt", "a"}, {"max_tokens", 60000}, {"ignore_eos", true}, {"seed", 1}};

json longer(json more) {
  json out = kLong;
  out.update(more);
  return out;
}

}  // namespace

TEST(Serve, CompletionsWholeAndStreamedAreTheSame) {
  Served served;
  const json request = {
      {"prompt", {"12+", "x"}}, {"max_tokens", 40}, {"n", 2}, {"seed", 5}, {"ignore_eos", true}};
  const HttpAnswer whole = served.post("/v1/completions", request);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json answer = whole.json();
  ASSERT_EQ(answer["choices"].size(), 4u);
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["usage"],
            (json{{"prompt_tokens", 4}, {"completion_tokens", 160}, {"total_tokens", 164}}));
  std::vector<std::string> texts(4);
  json streamed = request;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const HttpAnswer stream = served.post("/v1/completions", streamed);
  EXPECT_NE(stream.head.find("text/event-stream"), stream.head.npos);
  const auto all = events(stream.body);
  std::set<std::size_t> ended;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_TRUE(all[i]["usage"].is_null());
    const json& choice = all[i]["choices"][0];
    const auto index = choice["index"].get<std::size_t>();
    EXPECT_FALSE(ended.contains(index)) << "text after its end";
    texts[index] += choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) ended.insert(index);
  }
  EXPECT_EQ(ended.size(), 4u);
  EXPECT_TRUE(all.back()["choices"].empty());
  EXPECT_EQ(all.back()["usage"], answer["usage"]);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"], texts[i]) << i;
    EXPECT_EQ(answer["choices"][i]["finish_reason"], "length");
  }
  EXPECT_NE(texts[0], texts[1]);  // samples of one prompt differ
}

TEST(Serve, TheSeedDecidesWhatIsDrawn) {
  Served served;
  const auto drawn = [&](json more) {
    json request = {{"prompt", "a"}, {"max_tokens", 40}, {"ignore_eos", true}};
    request.update(more);
    return served.post("/v1/completions", request).json()["choices"][0]["text"].get<std::string>();
  };
  const std::string one = drawn({{"seed", 1}});
  EXPECT_EQ(drawn({{"seed", 1}}), one);
  EXPECT_NE(drawn({{"seed", 2}}), one);
  const std::string any = drawn(json::object());
  EXPECT_NE(any, one);
  EXPECT_NE(drawn(json::object()), any) << "without a seed each request has its own";
}

TEST(Serve, StopStringsNeverShow) {
  Served served;
  const json request = {{"prompt", "a"}, {"max_tokens", 200}, {"seed", 3}, {"ignore_eos", true}};
  const std::string text =
      served.post("/v1/completions", request).json()["choices"][0]["text"].get<std::string>();
  // Two characters of the text itself, so that the stop begins inside a token boundary or not.
  std::size_t at = text.size() / 2;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) >= 0x80 ||
                              static_cast<unsigned char>(text[at + 1]) >= 0x80)) {
    ++at;
  }
  ASSERT_LT(at + 2, text.size()) << text;
  const std::string stop = text.substr(at, 2);
  const std::string expected = text.substr(0, text.find(stop));
  for (const bool stream : {false, true}) {
    json stopped = request;
    stopped["stop"] = {stop, "never in there"};
    stopped["stream"] = stream;
    const HttpAnswer answer = served.post("/v1/completions", stopped);
    std::string got, reason, matched;
    for (const json& one : stream ? events(answer.body) : std::vector<json>{answer.json()}) {
      const json& choice = one["choices"][0];
      got += choice["text"].get<std::string>();
      if (choice["finish_reason"].is_null()) continue;
      reason = choice["finish_reason"];
      matched = choice["stop_reason"];
    }
    EXPECT_EQ(got, expected);
    EXPECT_EQ(reason, "stop");
    EXPECT_EQ(matched, stop);
  }
}

TEST(Serve, PromptsAreTextOrTokens) {
  Served served;
  const json request = {{"max_tokens", 8}, {"temperature", 0}, {"ignore_eos", true}};
  const auto text = [&](const json& prompt, bool echo) {
    json full = request;
    full["prompt"] = prompt;
    full["echo"] = echo;
    const json answer = served.post("/v1/completions", full).json();
    EXPECT_EQ(answer["choices"].size(), 1u) << answer;
    return answer["choices"][0]["text"].get<std::string>();
  };
  const json tokens = served.post("/tokenize", {{"prompt", "hello"}}).json()["tokens"];
  EXPECT_EQ(tokens.size(), 5u);
  EXPECT_EQ(served.post("/detokenize", {{"tokens", tokens}}).json()["prompt"], "hello");
  const std::string plain = text("hello", false);
  EXPECT_EQ(text(tokens, false), plain);
  EXPECT_EQ(text(json::array({tokens}), false), plain);
  EXPECT_EQ(text("hello", true), "hello" + plain);
  EXPECT_EQ(text(tokens, true), "hello" + plain);
}

TEST(Serve, AClientThatGoesFreesItsBlocksAndHarmsNobody) {
  Served served;
  const json other = {{"prompt", "b"}, {"max_tokens", 3000}, {"seed", 9}, {"ignore_eos", true}};
  const std::string alone = served.post("/v1/completions", other).body;
  Caller streaming(served.port), waiting(served.port), staying(served.port);
  streaming.send(
      http_request("POST", "/v1/completions", longer({{"stream", true}, {"n", 3}}).dump()));
  EXPECT_NE(streaming.read_until("data: ").find("data: "), std::string::npos);
  waiting.send(http_request("POST", "/v1/completions", kLong.dump()));
  staying.send(http_request("POST", "/v1/completions", other.dump()));
  ASSERT_TRUE(within(30, [&] { return served.metric("vllm:num_requests_running") >= 4; }));
  EXPECT_GT(served.metric("vllm:kv_cache_usage_perc"), 0.0);
  streaming.hang_up();
  waiting.hang_up();
  const json stayed = staying.answer().json();
  EXPECT_EQ(stayed["choices"], json::parse(alone)["choices"]);
  ASSERT_TRUE(within(30, [&] { return served.metric("vllm:num_requests_running") == 0; }));
  EXPECT_EQ(served.metric("vllm:kv_cache_usage_perc"), 0.0);
  EXPECT_EQ(served.metric("vllm:request_success_total{model_name=\"tiny\",engine=\"0\","
                          "finished_reason=\"abort\"}"),
            4.0);
  EXPECT_EQ(served.metric("vllm:request_success_total{model_name=\"tiny\",engine=\"0\","
                          "finished_reason=\"length\"}"),
            2.0);
}

TEST(Serve, ManyAtOnceAllGetTheirOwnAnswer) {
  Served served({"--max-num-seqs", "8"});
  std::vector<std::string> alone;
  for (int i = 0; i < 4; ++i) {
    alone.push_back(served
                        .post("/v1/completions",
                              {{"prompt", std::to_string(i)}, {"max_tokens", 20}, {"seed", i}})
                        .json()["choices"]
                        .dump());
  }
  std::vector<Caller> callers;
  for (int i = 0; i < 200; ++i) {
    callers.emplace_back(served.port);
    callers.back().send(http_request(
        "POST", "/v1/completions",
        json{{"prompt", std::to_string(i % 4)}, {"max_tokens", 20}, {"seed", i % 4}}.dump()));
  }
  for (int i = 0; i < 200; ++i) {
    const HttpAnswer answer = callers[static_cast<std::size_t>(i)].answer();
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json()["choices"].dump(), alone[static_cast<std::size_t>(i % 4)]);
  }
}

TEST(Serve, TooManyAtOnceAreToldSoAndOthersGoOn) {
  Served served({"--max-connections", "40"});
  Caller first(served.port);
  first.send(http_request("POST", "/v1/completions", longer({{"stream", true}}).dump()));
  EXPECT_NE(first.read_until("data: ").find("200 OK"), std::string::npos);
  std::vector<Caller> callers;
  for (int i = 0; i < 300; ++i) {
    callers.emplace_back(served.port);
    ASSERT_TRUE(callers.back().connected());
    callers.back().send(
        http_request("POST", "/v1/completions", json{{"prompt", "a"}, {"max_tokens", 4}}.dump()));
  }
  int served_count = 0, refused = 0;
  for (Caller& caller : callers) {
    const HttpAnswer answer = caller.answer();
    if (answer.status == 200) {
      ++served_count;
      continue;
    }
    ++refused;
    ASSERT_EQ(answer.status, 503) << answer.head << answer.body;
    EXPECT_NE(answer.head.find("Retry-After: 1"), std::string::npos);
    EXPECT_EQ(answer.json()["error"]["type"], "overloaded_error") << answer.body;
  }
  EXPECT_GT(served_count, 0);
  EXPECT_EQ(served_count + refused, 300);
  first.hang_up();
  ASSERT_TRUE(within(30, [&] { return served.call("GET", "/health").status == 200; }));
}

TEST(Serve, TheModelIsCalledAsItsFolderOrThePathUnlessItIsGivenNames) {
  const ScratchFolder folder;
  const std::string model = make_long_tiny_model(folder);
  Background program({troupe_program(), "serve", "--model", model + "/", "--port", "0"},
                     folder / "log.txt");
  ASSERT_TRUE(within(60, [&] { return program.says("/v1\n") || !program.running(); }));
  const std::string text = program.text();
  EXPECT_TRUE(text.starts_with("serving tiny at http://127.0.0.1:")) << text;
  const int port = std::atoi(text.c_str() + text.find("127.0.0.1:") + 10);
  for (const auto& [name, status] :
       {std::pair(std::string("tiny"), 200), std::pair(model + "/", 200),
        std::pair(std::string("x"), 404)}) {
    Caller caller(static_cast<std::uint16_t>(port));
    caller.send(http_request("POST", "/v1/completions",
                             json{{"model", name}, {"prompt", "a"}, {"max_tokens", 1}}.dump()));
    EXPECT_EQ(caller.answer().status, status) << name;
  }
}

TEST(Serve, BadRequestsAreRefusedInOpenAIsForm) {
  Served served;
  struct Bad {
    const char *path, *body;
    int status;
    const char* says;
  };
  const Bad table[] = {
      {"/v1/completions", "{\"prompt\":", 400, "not valid JSON"},
      {"/v1/completions", "{\"prompt\":\"\"}", 400, "empty"},
      {"/v1/completions", "{\"prompt\":[]}", 400, "must be"},
      {"/v1/completions", "{\"prompt\":[300]}", 400, "outside the vocabulary"},
      {"/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":65536}", 400, "context"},
      {"/v1/completions", "{\"prompt\":\"a\",\"model\":\"gpt\"}", 404, "gpt"},
      {"/v1/completions", "{\"prompt\":\"a\",\"temperature\":-1}", 400, "temperature"},
      {"/v1/completions", "{\"prompt\":\"a\",\"min_tokens\":17}", 400, "min_new_tokens"},
      {"/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", 400,
       "chat template"},
      {"/v1/embeddings", "{}", 404, "/v1/embeddings"},
  };
  for (const Bad& bad : table) {
    const HttpAnswer answer = served.call("POST", bad.path, bad.body);
    EXPECT_EQ(answer.status, bad.status) << bad.body;
    EXPECT_NE(answer.json()["error"]["message"].get<std::string>().find(bad.says),
              std::string::npos)
        << answer.body;
  }
  const HttpAnswer by_get = served.call("GET", "/v1/completions");
  EXPECT_EQ(by_get.status, 405);
  EXPECT_NE(by_get.head.find("Allow: POST"), std::string::npos);
  std::string long_prompt = "{\"prompt\":\"" + std::string(1u << 20, 'a') + "\"}";
  EXPECT_EQ(served.call("POST", "/v1/completions", long_prompt).json()["error"]["code"],
            "context_length_exceeded");
  // Not one of them stopped the server, and a gibibyte is refused before it is sent.
  Caller huge(served.port);
  huge.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n");
  const HttpAnswer refused = huge.answer();
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.json()["error"]["type"], "invalid_request_error");
  EXPECT_LT(served.program().memory_mb("VmHWM:"), 1024);
  EXPECT_EQ(served.post("/v1/completions", {{"prompt", "a"}}).status, 200);
}

TEST(Serve, AKeyIsWantedOnceThereIsOne) {
  Served served({"--api-key", "sesame"});
  const json request = {{"prompt", "a"}, {"max_tokens", 2}};
  const HttpAnswer without = served.post("/v1/completions", request);
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(without.json()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(served.call("GET", "/v1/models").status, 401);
  EXPECT_EQ(served.call("GET", "/v1/models", "", "Authorization: Bearer sesam\r\n").status, 401);
  const std::string key = "Authorization: Bearer sesame\r\n";
  EXPECT_EQ(served.call("POST", "/v1/completions", request.dump(), key).status, 200);
  EXPECT_EQ(served.call("GET", "/v1/models", "", key).json()["data"][0]["id"], "tiny");
  EXPECT_EQ(served.call("GET", "/health").status, 200);
}

TEST(Serve, EndsCleanlyInTheMiddleOfStreams) {
  Served served;
  Caller caller(served.port);
  caller.send(http_request("POST", "/v1/completions", longer({{"stream", true}}).dump()));
  EXPECT_NE(caller.read_until("data: ").find("data: "), std::string::npos);
  served.program().signal(SIGTERM);
  EXPECT_EQ(served.program().wait(30).value_or(-1), 0) << served.program().text();
  EXPECT_TRUE(served.program().says("stopped\n"));
}

TEST(Serve, MistakesOfTheCommandLine) {
  const ScratchFolder folder;
  const auto ends = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    return troupe_ends(std::move(words), folder / "log.txt", 30);
  };
  const Ended open_host = ends({"--model", "nowhere", "--host", "0.0.0.0"});
  EXPECT_EQ(open_host.status, 2) << open_host.text;
  EXPECT_NE(open_host.text.find("--insecure"), std::string::npos) << open_host.text;
  EXPECT_EQ(ends({"--model", "nowhere", "--api-key-file", "/nowhere"}).status, 2);
  EXPECT_EQ(ends({"--model", "nowhere", "--port", "70000"}).status, 2);
  // Each names its flag, before any weights are read.
  const std::string model = make_long_tiny_model(folder);
  std::filesystem::remove(std::filesystem::path(model) / "model.safetensors");
  std::ofstream(folder / "keys") << "one\n\ntwo words\n";
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{"--max-model-len", "70000"}, "--max-model-len 70000: the model has positions for 65536"},
      {{"--kv-cache-memory-bytes", "100"}, "--kv-cache-memory-bytes: "},
      {{"--api-key-file", (folder / "keys").string()}, "--api-key-file: line 3 of "},
  };
  for (const auto& [flags, says] : table) {
    std::vector<std::string> words = {"--model", model, "--port", "0"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Ended ended = ends(words);
    EXPECT_EQ(ended.status, 2) << ended.text;
    EXPECT_NE(ended.text.find(says), std::string::npos) << ended.text;
  }
}

}  // namespace troupe::test
