"""The apps of the two ports: what they answer once the model is there, and until then."""

from quart import Quart

from neuroscope_jax.config import NeuroscopeConfig
from server import errors
from server.access import guard
from server.api_key import require_key
from server.chat import chat_routes
from server.completions import completions_routes
from server.errors import register_error_handlers
from server.features import features_routes
from server.health import health_routes
from server.metrics import metrics_routes
from server.state import ServerState

MAX_BODY_BYTES = 8 * 2**20  # many times what the longest context takes


def create_apps(state: ServerState) -> tuple[Quart, Quart]:
    """The chat app and the features app, over one state."""
    chat, features = _app("chat", state.config), _app("features", state.config)
    for app in (chat, features):
        app.register_blueprint(health_routes(state))
        app.register_blueprint(metrics_routes(state.metrics))
    chat.register_blueprint(chat_routes(state))
    chat.register_blueprint(completions_routes(state))
    features.register_blueprint(features_routes(state))
    return chat, features


def create_loading_app(name: str, config: NeuroscopeConfig) -> Quart:
    """An app that answers everybody, monitors included, that the model is not there yet."""
    app = _app(name, config)

    @app.before_request
    async def refuse() -> None:
        raise errors.loading()

    return app


def _app(name: str, config: NeuroscopeConfig) -> Quart:
    app = Quart(f"server.{name}", static_folder=None, template_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    guard(app, config)
    require_key(app, config.api_key)
    register_error_handlers(app)
    return app
