// What must hold between the settings of a server, and of the files that they name. Internal to config.
#ifndef EBBGATE_SERVER_CONFIG_OPTIONS_CHECK_H_
#define EBBGATE_SERVER_CONFIG_OPTIONS_CHECK_H_

#include <string>
#include <vector>

#include "server/config/server_options.h"
#include "server/config/settings.h"

namespace ebbgate {

// A line for each fault, naming where the setting at fault came from. Reads the TLS files; not the limits.
std::vector<std::string> CheckOptions(const ServerOptions& options, const SettingSources& sources);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_OPTIONS_CHECK_H_
