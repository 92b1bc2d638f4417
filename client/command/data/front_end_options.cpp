#include "client/command/data/front_end_options.h"

#include <fmt/core.h>

namespace batchwright {
namespace {

/// A number of the front end, with htk's as the default that is shown.
template <class Value>
void add_number(CLI::App& command, FrontEndCall& call, const char* name,
                Value FrontEndOptions::*member, const char* unit, const char* what) {
  command
      .add_option_function<Value>(
          name,
          [&call, member](const Value& value) {
            call.changes.push_back([member, value](FrontEndOptions& o) { o.*member = value; });
          },
          what)
      ->type_name(unit)
      ->default_str(fmt::format("{}", FrontEndOptions().*member))
      ->group("Front end");
}

/// A length in milliseconds takes the place of a convention's in samples.
void add_length(CLI::App& command, FrontEndCall& call, const char* name,
                double FrontEndOptions::*member, std::uint32_t FrontEndOptions::*samples,
                const char* what) {
  command
      .add_option_function<double>(
          name,
          [&call, member, samples](double value) {
            call.changes.push_back([=](FrontEndOptions& o) {
              o.*member = value;
              o.*samples = 0;
            });
          },
          what)
      ->type_name("MS")
      ->default_str(fmt::format("{}", FrontEndOptions().*member))
      ->group("Front end");
}

/// All options of the front end, by the names that recipes have for them.
void add_any_option(CLI::App& command, FrontEndCall& call) {
  add_named_values(command, "--option",
                   "Any option by the name that a recipe has for it, such as snip_edges=false",
                   [&call](const std::string& name, const std::string& value) {
                     FrontEndOptions tried;  // so that a slip is told here
                     if (auto set = set_option(tried, name, value); !set) {
                       throw CLI::ValidationError("--option", set.error().message);
                     }
                     call.changes.push_back([name, value](FrontEndOptions& o) {
                       static_cast<void>(set_option(o, name, value));
                     });
                   })
      ->group("Front end");
}

}  // namespace

void add_front_end(CLI::App& command, const std::shared_ptr<FrontEndCall>& shared) {
  FrontEndCall& call = *shared;
  using O = FrontEndOptions;
  command.add_option("--like", call.like, "Convention whose settings the others change")
      ->check(CLI::IsMember(
          std::vector<std::string>(front_end_names().begin(), front_end_names().end())))
      ->type_name("")
      ->capture_default_str()
      ->group("Front end");
  // Bounds are the front end's own (audio_source()): some depend on the sample rate.
  add_choice<FeatureKind>(
      command, "--features", call.features,
      {{"logmel", FeatureKind::logmel}, {"mfcc", FeatureKind::mfcc}, {"plp", FeatureKind::plp}})
      ->description("Log-mel energies, or cepstra of them; plp: of kaldi")
      ->group("Front end");
  add_length(command, call, "--window-ms", &O::window_ms, &O::window_samples,
             "Length of a frame's window");
  add_length(command, call, "--hop-ms", &O::hop_ms, &O::hop_samples,
             "Time from one frame to the next");
  add_number(command, call, "--window-samples", &O::window_samples, "N",
             "The same in samples; 0: as milliseconds say");
  add_number(command, call, "--hop-samples", &O::hop_samples, "N",
             "The same in samples; 0: as milliseconds say");
  command
      .add_option_function<std::string>(
          "--window",
          [&call](const std::string& word) {
            call.changes.push_back(
                [word](O& o) { static_cast<void>(set_option(o, "window", word)); });
          },
          "Shape of the window")
      ->check(CLI::IsMember(std::vector<std::string>(window_words().begin(), window_words().end())))
      ->type_name("")
      ->default_str("hamming")
      ->group("Front end");
  add_number(command, call, "--fft-size", &O::fft_size, "POINTS",
             "0: the next power of two above the window");
  add_number(command, call, "--mel-bands", &O::mel_bands, "N", "Mel bands");
  add_number(command, call, "--fmin", &O::fmin_hz, "HZ", "Lower end of the lowest band");
  add_number(command, call, "--fmax", &O::fmax_hz, "HZ",
             "Upper end of the highest band; 0 or less: offset below half the rate");
  add_number(command, call, "--pre-emphasis", &O::pre_emphasis, "K", "s(n) - K s(n-1); 0: off");
  add_number(command, call, "--log-floor", &O::log_floor, "ENERGY",
             "Energies below it are raised to it, or it is added");
  add_number(command, call, "--cepstra", &O::cepstra, "N",
             "Coefficients of a frame, for mfcc and plp");
  add_number(command, call, "--pad-to", &O::pad_to, "N",
             "Samples up to which silence follows shorter sound");
  add_any_option(command, call);
}

}  // namespace batchwright
