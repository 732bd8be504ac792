"""A command -> the config as it will be trained, and the GPUs that it will be trained on."""

from collections.abc import Callable

from advisor.cli.launchers.cloud import Cloud, read_cloud
from advisor.cli.launchers.training import Command
from advisor.documents import Document, read
from advisor.errors import InputError
from advisor.hardware import Hardware
from advisor.record import replace
from advisor.run.overrides import overridden
from advisor.session import RunOptions, Session
from advisor.session.launched import launched_on
from advisor.session.lenient import lenient_session
from advisor.streams import tell


def session_of(command: Command, options: RunOptions) -> Session:
    """The session of a command. What is installed here says nothing of the image that a cloud runs."""
    session = lenient_session([command.config or ""], options, here=command.cloud is None)
    folder = command.folder or session.context.working_directory
    return replace(session, context=replace(session.context, working_directory=folder))


def cloud_of(command: Command, gpus: str | None) -> Cloud | None:
    """What ``--cloud`` names, once it is said what there is to say of it; None without it."""
    if command.cloud is None:
        return None
    try:
        cloud = read_cloud(command.cloud)
    except InputError:
        if gpus:
            return None
        raise
    for remark in cloud.remarks if not gpus else ():
        tell(remark)
    if command.overrides and not cloud.overrides:
        tell(f"{command.cloud}: the cloud trains the config as it is written: keys of the command line do not reach it")
    return cloud


def config_of(command: Command, cloud: Cloud | None) -> Document:
    """The config as it will be trained."""
    config = read(command.config or "")
    return config if cloud is not None and not cloud.overrides else overridden(config, command.overrides)


def hardware_of(command: Command, config: Document, session: Session, cloud: Cloud | None) -> Hardware | None:
    """The GPUs of the launch: as its own option says, else the cloud's, else as ``launched_on`` finds them."""
    if cloud is None or session.context.gpus:
        return launched_on(config, session, _scaled_by(command))
    return cloud.hardware and _scaled_by(command)(cloud.hardware)


def _scaled_by(command: Command) -> Callable[[Hardware], Hardware]:
    """One GPU for each process that the command starts."""

    def scaled(found: Hardware) -> Hardware:
        per_node, nodes = command.scale.counts(found.gpus_per_node, found.nodes)
        return replace(found, gpus_per_node=per_node, nodes=nodes)

    return scaled
