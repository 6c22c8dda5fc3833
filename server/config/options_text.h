// The texts that ebbgated prints about itself. Internal to config.
#ifndef EBBGATE_SERVER_CONFIG_OPTIONS_TEXT_H_
#define EBBGATE_SERVER_CONFIG_OPTIONS_TEXT_H_

#include <string>

#include "server/config/server_options.h"
#include "server/config/settings.h"

namespace ebbgate {

std::string VersionText();
std::string HelpText();

// All settings but the actions as YAML that --config takes, each with its origin in a comment.
std::string ConfigText(const ServerOptions& options, const SettingSources& sources);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_OPTIONS_TEXT_H_
