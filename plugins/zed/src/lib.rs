//! Starts `advisor server`, the command of the settings or the one on the path.

use zed_extension_api::{
    self as zed, serde_json::Value, settings::LspSettings, Command, LanguageServerId, Result,
    Worktree,
};

struct Advisor;

impl zed::Extension for Advisor {
    fn new() -> Self {
        Advisor
    }

    fn language_server_command(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Command> {
        let binary = LspSettings::for_worktree(id.as_ref(), worktree)?.binary;
        let (path, arguments) = binary.map_or((None, None), |found| (found.path, found.arguments));
        let command = path
            .or_else(|| worktree.which("advisor"))
            .ok_or("advisor is not on the path: https://github.com/OWNER/axolotl-advisor#readme says how to install it")?;
        let args = arguments.unwrap_or_else(|| vec!["server".into()]);
        Ok(Command {
            command,
            args,
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        Ok(LspSettings::for_worktree(id.as_ref(), worktree)?.initialization_options)
    }
}

zed::register_extension!(Advisor);
